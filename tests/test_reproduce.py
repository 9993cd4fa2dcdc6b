"""The reproduction: its plan, its processes, what its jobs measure, and that the page in docs/ comes from them."""

from __future__ import annotations

import gc
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

import lasca
from lasca.truth import MODEL_NAMES
from reproduction import ambiguity, beyond, clusters, entities, tagging, tweets
from reproduction import run as whole
from reproduction.jobs import MODELS, NEWER, Job, Results, Scope, rounded
from reproduction.page import Heading, Picture, Table, markdown
from reproduction.paper import CROWDS, TABLE_1, TABLE_2, TABLE_3
from reproduction.run import MEASURES, blocks_of, kept, measure, plan, scope_of, split
from reproduction.statistics import mean, paired

DOCS = Path(__file__).parent.parent / "docs"
SCOPES = [scope_of(True), scope_of(False)]


@pytest.fixture
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    return data_dir


@pytest.mark.parametrize("scope", SCOPES)
def test_every_job_has_a_name_of_its_own_and_what_it_needs_is_planned(scope):
    jobs = plan(scope)
    names = {job.id for job in jobs}
    assert len(names) == len(jobs)
    assert all(names.issuperset(job.needs) for job in jobs)
    assert {job.section for job in jobs} == set(MEASURES)


def test_the_plan_has_every_row_of_every_table():
    jobs = plan(scope_of(False))
    crowds = {(j.settings["groups"], j.settings["model"], j.settings["seed"]) for j in jobs if j.section == "tweets"}
    assert crowds == {(c, m, s) for c in CROWDS for m in (*MODELS, *NEWER, tweets.GOLD) for s in range(5)}
    parts = {(j.settings["part"], j.settings["model"]) for j in jobs if j.section == "entities"}
    assert parts == {(p, m) for p in ("3000", "all") for m in MODELS} | {("3000", m) for m in NEWER}
    assert set(TABLE_1) < set(MODELS)
    assert {*MODELS, *NEWER} == set(MODEL_NAMES)
    assert set(TABLE_2) == set(TABLE_3) == {*TABLE_1, "la-sca"}


def cheap_jobs() -> list[Job]:
    settings = {"case": "difficulty", "groups": "ca1", "value": "0.4", "seed": 0}
    return [
        Job("beyond", {**settings, "model": model}, cost) for model, cost in (("mv", 3.0), ("ds", 2.0), ("glad", 1.0))
    ]


@pytest.mark.data
def test_a_stopped_run_is_taken_up(data, tmp_path):
    jobs = cheap_jobs()
    measure(jobs[0], tmp_path)
    before = (tmp_path / f"{jobs[0].id}.json").stat().st_mtime_ns
    whole.run(jobs, tmp_path, 2)
    assert (tmp_path / f"{jobs[0].id}.json").stat().st_mtime_ns == before
    for job in jobs:
        found = beyond.measure(**job.settings)
        assert {k: v for k, v in kept(job, tmp_path)["result"].items() if k != "used"} == rounded(found)


def test_what_other_settings_or_other_code_measured_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setitem(MEASURES, "beyond", lambda seed: {"value": 1.23456789})
    job = Job("beyond", {"seed": 1})
    assert kept(job, tmp_path) is None
    measure(job, tmp_path)
    assert kept(job, tmp_path)["result"]["value"] == 1.23457
    other = Job("beyond", {"seed": "1"})
    assert other.id == job.id
    assert kept(other, tmp_path) is None
    file = tmp_path / f"{job.id}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"code": "of last year"}))
    assert kept(job, tmp_path) is None


def test_only_what_is_asked_for_or_missing_is_measured_again():
    jobs = [Job("tweets", {"seed": seed, "model": model}) for seed in (0, 1) for model in ("ds", "bsc")]
    earlier = {job.id: {} for job in jobs[:3]}
    todo, taken = split(jobs, earlier, ["tweets-*-ds"])
    assert (todo, taken) == ([jobs[0], jobs[2], jobs[3]], [jobs[1]])
    assert split(jobs, {}, ()) == (jobs, [])


@pytest.mark.data
def test_a_job_that_fails_ends_the_run_and_the_others_are_kept(data, tmp_path):
    good = cheap_jobs()[0]
    bad = Job("beyond", {**good.settings, "model": "nobody"}, cost=0.1)
    with pytest.raises(RuntimeError, match=f"{bad.id} failed.*nobody"):
        whole.run([good, bad], tmp_path, 1)
    assert kept(good, tmp_path) is not None


def test_rounding_keeps_what_is_no_float():
    assert rounded({"a": [1, 0.123456789, "x"], "b": (None, True)}) == {"a": [1, 0.123457, "x"], "b": [None, True]}


def test_results_are_found_by_settings_and_path():
    rows = [(Job("x", {"seed": s, "model": m}), {"deep": {"score": s + 10 * (m == "b")}}) for m in "ab" for s in (0, 1)]
    results = Results(tuple(rows))
    assert results.values("x", ("deep", "score"), model="b") == [10, 11]
    assert results.settings("x", "seed") == [0, 1]
    assert results.select("y") == []


def test_means_and_paired_intervals():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 1, 7), rng.normal(0, 1, 7)
    found = paired(list(first), list(second))
    low, high = ttest_rel(first, second).confidence_interval(0.95)
    np.testing.assert_allclose([found.value, found.low, found.high], [(first - second).mean(), low, high], rtol=1e-12)
    assert math.isnan(paired([1.0], [0.5]).low)
    assert not paired([1.0], [0.5]).clear
    assert paired([1.0], [0.5]).shown() == "+0.50"
    assert mean([1.0, 2.0, 3.0]).shown() == "2.00 ± 1.00"
    assert mean([1.0]).shown() == "1.00"
    assert mean([]).shown() == "–"


@pytest.mark.data
def test_a_tweets_job_measures_what_it_says(data):
    words = {"templates": "word[0]", "l2": 0.1}
    got = tweets.infer("table-1", "ca3", 1, "mv", needed={"choose": words})
    corpus = lasca.simulate.crowd(
        lasca.datasets.load("tdga"), gold="gold1", groups="ca3", wrong="prior", common=0.067, seed=1
    )
    truth = lasca.MajorityVote().fit(corpus)
    gold = corpus.golds["gold1"]
    assert got["truth"]["gold1"] == pytest.approx(100 * (truth.labels == gold).mean())
    test = lasca.datasets.load("inhouse")
    tagger = lasca.CrfTagger(templates="word[0]", l2=0.1).fit(corpus, truth)
    found = tagger.predict([test.sequence(s) for s in range(test.n_sequences)])
    score = lasca.evaluate.tokens(test.label_names(test.golds["gold"]), found)
    scores = got["taggers"]["word"]
    assert scores["INHOUSE"]["accuracy"] == pytest.approx(100 * score.accuracy)
    own = [part.f1 for part in score.per_label.values() if part.n_gold]
    assert scores["INHOUSE"]["macro_f1"] == pytest.approx(100 * np.mean(own))
    assert scores["INHOUSE, new"]["n_sequences"] == 88
    assert got["taggers"]["default"]["RITTER"]["accuracy"] > scores["RITTER"]["accuracy"]


@pytest.mark.data
def test_gold_takes_the_place_of_a_model(data):
    words = {"templates": "word[0]", "l2": 0.1}
    got = tweets.infer("table-1", "ca3", 1, tweets.GOLD, needed={"choose": words})
    tagger = lasca.CrfTagger(templates="word[0]", l2=0.1).fit(lasca.datasets.load("tdga"), "gold1")
    assert set(got) == {"taggers"}
    assert got["taggers"]["word"] == tweets.unseen_scores(tagger)


@pytest.mark.data
@pytest.mark.parametrize("model", MODEL_NAMES)
def test_a_small_fit_compiles_all_that_a_large_one_needs(data, model):
    """What `infer` fits before the clock starts leaves nothing to compile or load."""
    corpus = entities.sentences("3000")
    tweets.fitted(model, corpus.select(sequences=np.arange(entities.WARM)), 0)
    ready = compiled()
    tweets.fitted(model, corpus.select(sequences=np.arange(100)), 0)
    assert compiled() == ready


def compiled() -> int:
    from numba.core.dispatcher import Dispatcher

    return sum(len(found.overloads) for found in gc.get_objects() if isinstance(found, Dispatcher))


@pytest.mark.data
def test_word_features_are_chosen_by_held_out_votes(data):
    corpus = tweets.crowd("table-1", "ca1", 0).select(sequences=np.arange(60))
    chosen = tagging.choose_word_features(corpus)
    best = max(chosen["tried"], key=lambda row: row["score"])
    assert (chosen["templates"], chosen["l2"]) == (best["templates"], best["l2"])
    assert len(chosen["tried"]) == 14
    assert 0.0003 < chosen["l2"] < 0.3  # not at the edge of what is tried
    assert len({row["score"] for row in chosen["tried"]}) > 1


@pytest.mark.data
def test_the_sentences_of_table_3(data):
    first, everything = entities.sentences("3000"), entities.sentences("all")
    assert everything.n_sequences == 6056
    assert first.annotated_sequences.all()
    assert first.n_sequences == int(entities.whole().annotated_sequences[:3000].sum())
    drawn, again, other = (entities.sentences(f"random-{seed}") for seed in (0, 0, 1))
    assert drawn == again
    assert drawn != other
    assert 2700 <= drawn.n_sequences <= 3400
    assert entities.overlap(everything) == 133  # as the data's README counts


@pytest.mark.data
def test_an_ambiguity_job_agrees_with_the_scores_of_the_library(data):
    got = ambiguity.measure("independent", "ca1", 0.4, 7)
    assert got["two-truths"]["AP"] > 0.85 > got["rank-1"]["AP"] > 0.3
    assert got["two-truths"]["ECE"] <= 0.03
    assert got["rank-1"]["ECE"] is None
    assert got["two-truths"]["Spearman"] >= 0.7


@pytest.mark.data
def test_troubles_change_the_crowd(data):
    whole = tweets.crowd("table-1", "ca2", 0)
    plain = tweets.truth_scores(whole, tweets.fitted("mv", whole, 0))
    spam = beyond.measure("trouble", "ca2", "5 spammers, one label", 0, "mv")
    few = beyond.measure("annotators", "ca2", "1", 0, "mv")
    assert few["gold1"] < spam["gold1"] < plain["gold1"]
    assert beyond.measure("annotators", "ca2", "15", 0, "mv") == plain  # which is why it is not measured twice


def test_clusters_are_tried_with_the_papers_priors():
    jobs = clusters.jobs(Scope((0,)))
    assert sum(job.settings["priors"] == "paper" for job in jobs) == 3


def test_missing_data_is_said_at_once(tmp_path):
    env = {"LASCA_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-m", "reproduction"], env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "not here: tdga" in done.stderr


def test_parts_of_the_page_are_escaped():
    table = Table(("model", "F1"), (("GLAD *", "65.32"), ("a|b_", "")), "Caption", frozenset({(0, 1)}))
    text = markdown([Heading("A `part`", 3), table])
    assert text.endswith(
        "### A \\`part\\`\n\nCaption\n\n| model | F1 |\n| :--- | ---: |\n| GLAD \\* | **65.32** |\n| a\\|b\\_ |  |\n"
    )
    with pytest.raises(ValueError, match="row 1 has 3 cells, the header has 2"):
        Table(("a", "b"), (("x", "1"), ("y", "1", "2")))


@pytest.fixture(scope="module")
def measured():
    return json.loads((DOCS / "reproduction" / "results.json").read_text(encoding="utf-8"))


def test_the_page_in_docs_is_what_its_results_say(measured):
    """Nothing on the page is typed in: it is made of results.json beside it, which `make reproduction` wrote."""
    blocks = blocks_of(measured, scope_of(False))
    lacking = {job.id: job.section for job in plan(scope_of(False)) if job.id not in measured}
    assert {*lacking, *measured} == {job.id for job in plan(scope_of(False))}
    assert all(f"`{section}`" in markdown(blocks[-1:]) for section in lacking.values())
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == markdown(blocks)
    assert all(f"`{entry['code']}`" in markdown(blocks[-1:]) for entry in measured.values())
    pictures = {block.name for block in blocks if isinstance(block, Picture)}
    assert pictures == {file.stem for file in (DOCS / "reproduction").glob("*.svg")}


def test_pictures_show_what_was_measured_in_the_same_bytes(measured, tmp_path):
    for run in ("one", "two"):
        whole.write(measured, scope_of(False), tmp_path / f"{run}.md")
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    drawn = (tmp_path / "one" / "figure-6.svg").read_text(encoding="utf-8")
    words = re.findall(r"<text[^>]*>(?:<!--.*?-->)?([^<]*)</text>", drawn)
    assert {"B-LOC", "cluster 1: 41 annotators", ".80"} <= set(words)
    assert not re.search(r"<script|href=\"http", drawn)
    assert (tmp_path / "one" / "results.json").read_text() == (DOCS / "reproduction" / "results.json").read_text()


def test_a_quick_page_can_be_made_of_a_part_of_the_results(measured):
    scope = scope_of(True)
    text = markdown(blocks_of({job.id: measured[job.id] for job in plan(scope) if job.id in measured}, scope))
    assert "`make reproduction QUICK=1`" in text
    assert " nan" not in text
