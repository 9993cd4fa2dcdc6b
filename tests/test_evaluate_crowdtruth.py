"""CrowdTruth's metrics against their definitions by vectors and cosines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lasca
import naive
from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.evaluate.crowdtruth_scores import crowdtruth_rounds
from truth_cases import crowd


def votes_of(corpus: CrowdCorpus) -> list[dict[int, int]]:
    votes: list[dict[int, int]] = [{} for _ in range(corpus.n_tokens)]
    for i, a, s in zip(corpus.annotation_token, corpus.annotation_annotator, corpus.annotation_label):
        votes[i][int(a)] = int(s)
    return votes


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return crowd(n_sequences=12, n_annotators=5, coverage=0.6, unlabelled=1)


def test_qualities_equal_their_definitions(corpus: CrowdCorpus) -> None:
    found = evaluate.crowdtruth(corpus)
    arrays = (corpus.token_start, corpus.annotation_annotator, corpus.annotation_label)
    rounds = crowdtruth_rounds(*arrays, corpus.n_annotators, corpus.n_labels)
    unit, worker, quality = np.ones(corpus.n_tokens), np.ones(5), np.ones(3)
    votes = votes_of(corpus)
    for _ in rounds.trace:
        before = unit, worker, quality
        unit, worker, quality = naive.crowdtruth_step(votes, unit, worker, quality)
    np.testing.assert_allclose(found.unit_quality, unit, rtol=1e-9)
    np.testing.assert_allclose(found.worker_quality, worker, rtol=1e-9)
    np.testing.assert_allclose(found.annotation_quality, quality, rtol=1e-9)
    assert found.converged
    old_unit, old_worker, _ = before
    for a in range(5):
        mine = [i for i, given in enumerate(votes) if a in given and len(given) > 1]
        pairs = [(i, b) for i in mine for b in votes[i] if b != a]
        agreed = sum(old_unit[i] * old_worker[b] * (votes[i][a] == votes[i][b]) for i, b in pairs)
        expected = agreed / sum(old_unit[i] * old_worker[b] for i, b in pairs)
        assert found.worker_worker_agreement[a] == pytest.approx(expected, rel=1e-9)
    product = found.worker_unit_agreement * found.worker_worker_agreement
    np.testing.assert_allclose(product, found.worker_quality, rtol=1e-9)


def test_lowest_tokens_with_their_annotations(corpus: CrowdCorpus) -> None:
    found = evaluate.crowdtruth(corpus)
    lowest = found.lowest[0]
    assert lowest["quality"] == pytest.approx(np.nanmin(found.unit_quality))
    token = int(corpus.offsets[list(corpus.sequence_ids).index(lowest["sequence"])]) + lowest["position"]
    given = votes_of(corpus)[token]
    weights = {a: found.worker_quality[a] for a in given}
    for label, share in lowest["annotations"].items():
        mine = sum(w for a, w in weights.items() if corpus.labels[given[a]] == label)
        assert share == pytest.approx(mine / sum(weights.values()))
    qualities = [entry["quality"] for entry in found.lowest]
    assert qualities == sorted(qualities)


def test_nobody_met_anybody() -> None:
    corpus = CrowdCorpus.from_sequences([["a"], ["b"]], {"x": [["N"], None], "y": [None, ["V"]]})
    found = evaluate.crowdtruth(corpus).to_dict()
    assert found["units"] == {"tokens": 0, "mean quality": None, "lowest": []}
    assert [w["quality"] for w in found["workers"]] == [0, 0]


def test_inspect_tells_them(corpus: CrowdCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lasca.cli.commands import corpora as commands

    corpus.save(tmp_path / "crowd")
    commands.inspect(str(tmp_path / "crowd"), json=True)
    told = json.loads(capsys.readouterr().out)["crowdtruth"]
    assert told == json.loads(json.dumps(evaluate.crowdtruth(corpus).to_dict()))
    assert {w["name"] for w in told["workers"]} == set(corpus.annotators)


def test_the_report_has_a_column_where_asked(corpus: CrowdCorpus) -> None:
    run = lasca.run(corpus, model="mv")
    plain, asked = run.page(), run.page(crowdtruth=True)
    assert ">CrowdTruth</button>" not in plain
    assert ">CrowdTruth</button>" in asked
    best = float(evaluate.crowdtruth(corpus).worker_quality.max())
    assert f'data-sort="{best}">{best:.2f}</td>' in asked
