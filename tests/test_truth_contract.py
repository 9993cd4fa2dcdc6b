"""What every truth model owes its users, one suite for all of them."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError, ModelError
from lasca.testing import check_truth_model
from lasca.truth import MODEL_NAMES, Truth, TruthModel, model_class
from truth_cases import LABELS, big_crowd, crowd, shuffled

QUICK: dict[str, dict[str, Any]] = {
    "mace": {"restarts": 3},
    "sembler": {"max_iter": 5},
    "hc": {"n_chains": 2, "n_warmup": 30, "n_samples": 40, "n_clusters": 2},
    "hc-seq": {"rounds": 1, "folds": 2, "text_iterations": 8},
    "robust": {"rounds": 1, "folds": 2, "text_iterations": 8},
}
"""Settings that make a model quick on small data; the answers stay sensible."""

CLIMBERS = [name for name in MODEL_NAMES if name not in ("mv", "hc", "crf-ma", "robust")]
"""Models with an objective that never falls (that of crf-ma does not with reliability="share": see its own tests)."""

SAMPLED = {"hc": 0.15, "hc-seq": 0.15, "robust": 0.15}
"""How far probabilities may move when the order of what is sampled, or dealt to folds, changes."""


def model(name: str, **changes: Any) -> TruthModel:
    return model_class(name)(**(QUICK.get(name, {}) | changes))


def few_steps(name: str) -> dict[str, Any]:
    return {"n_warmup": 4, "n_samples": 4} if name == "hc" else {} if name == "mv" else {"max_iter": 3}


def check(truth: Truth, corpus: CrowdCorpus) -> None:
    """Every field has its shape, every probability is one."""
    n, T, L = corpus.n_tokens, corpus.n_labels, corpus.n_annotators
    assert truth.labels.shape == (n,)
    assert truth.labels.dtype == np.int16
    assert truth.labels.min() >= 0
    assert truth.labels.max() < T
    assert truth.proba.shape == (n, T)
    assert truth.proba.dtype == np.float32
    assert truth.proba.min() >= 0
    np.testing.assert_allclose(truth.proba.sum(axis=1), 1, atol=1e-5)
    assert truth.confusion.shape == (L, T, T)
    assert truth.confusion.min() >= 0
    np.testing.assert_allclose(truth.confusion.sum(axis=2), 1, atol=1e-4)
    assert truth.annotators.column("name").to_pylist() == list(corpus.annotators)
    for column in ("reliability", "reliability_low", "reliability_high"):
        values = truth.annotators.column(column).to_numpy()
        assert ((values >= 0) & (values <= 1)).all()
    assert np.isfinite(truth.trace).all()
    assert [len(s) for s in truth.sequences()] == np.diff(corpus.offsets).tolist()


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return crowd(n_sequences=60, unlabelled=2)


@pytest.fixture(scope="module")
def fitted(corpus: CrowdCorpus) -> dict[str, Truth]:
    return {}


def truth_of(name: str, corpus: CrowdCorpus, fitted: dict[str, Truth]) -> Truth:
    if name not in fitted:
        fitted[name] = model(name).fit(corpus)
    return fitted[name]


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_result_is_whole_and_good(name: str, corpus: CrowdCorpus, fitted: dict[str, Truth]) -> None:
    truth = truth_of(name, corpus, fitted)
    check(truth, corpus)
    assert truth.model == name
    assert truth.warnings == ()
    labelled = np.diff(corpus.token_start) > 0
    assert (truth.labels == corpus.golds["gold"])[labelled].mean() > 0.9


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_contract_that_strangers_keep(name: str) -> None:
    check_truth_model(model(name))


@pytest.mark.parametrize("name", CLIMBERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_objective_never_falls(name: str, seed: int) -> None:
    corpus = crowd(n_sequences=30, n_annotators=4, seed=seed, unlabelled=1)
    trace = model(name, max_iter=25, tol=0).fit(corpus).trace
    assert len(trace) == 25
    assert np.diff(trace).min() >= -1e-7 * abs(trace[-1])
    assert trace[-1] > trace[0]


@pytest.mark.parametrize("name", CLIMBERS)
@pytest.mark.parametrize("variational", [False, True])
def test_the_objective_never_falls_either_way(name: str, variational: bool) -> None:
    if "variational" not in model_class(name)().get_params():
        assert name in {"glad", "sembler", "raykar", "bsc", "hc-seq", "robust"}  # one way only, tested above
        return
    trace = model(name, variational=variational, max_iter=25, tol=0).fit(crowd(n_sequences=30, seed=3)).trace
    assert np.diff(trace).min() >= -1e-7 * abs(trace[-1])


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_same_seed_same_bytes_whatever_the_threads(name: str) -> None:
    corpus = big_crowd(n_tokens=8_000, n_annotators=8, n_labels=4)
    threads = [1, 2] if "n_threads" in model_class(name)().get_params() else [None, None]
    runs = [model(name, **few_steps(name), **({} if n is None else {"n_threads": n})).fit(corpus) for n in threads]
    for field in ("labels", "proba", "confusion", "trace"):
        assert getattr(runs[0], field).tobytes() == getattr(runs[1], field).tobytes(), field
    assert runs[0].annotators.equals(runs[1].annotators)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_the_order_of_rows_changes_no_byte(name: str, corpus: CrowdCorpus, fitted: dict[str, Truth]) -> None:
    order = np.random.default_rng(0).permutation(corpus.n_annotations)
    again = CrowdCorpus.from_codes(
        tokens=corpus.tokens,
        offsets=corpus.offsets,
        labels=corpus.labels,
        annotators=corpus.annotators,
        annotation_token=corpus.annotation_token[order],
        annotation_annotator=corpus.annotation_annotator[order],
        annotation_label=corpus.annotation_label[order],
        sequence_ids=corpus.sequence_ids,
    )
    assert model(name).fit(again).proba.tobytes() == truth_of(name, corpus, fitted).proba.tobytes()


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_names_and_order_do_not_matter(name: str, corpus: CrowdCorpus, fitted: dict[str, Truth]) -> None:
    """Other names of annotators (so another order) and another order of sequences: the same truth."""
    other, tokens, annotators = shuffled(corpus, seed=1)
    truth, again = truth_of(name, corpus, fitted), model(name).fit(other)
    atol = SAMPLED.get(name, 0.02)
    np.testing.assert_allclose(again.proba, truth.proba[tokens], atol=atol)
    clear = np.sort(truth.proba, axis=1)[:, -1] - np.sort(truth.proba, axis=1)[:, -2] > 2 * atol
    np.testing.assert_array_equal(again.labels[clear[tokens]], truth.labels[tokens][clear[tokens]])
    reliability = [t.annotators.column("reliability").to_numpy() for t in (truth, again)]
    np.testing.assert_allclose(reliability[1], reliability[0][annotators], atol=atol)


@pytest.mark.parametrize("name", [n for n in CLIMBERS if n != "hc-seq"])
def test_restarts_differ(name: str, corpus: CrowdCorpus) -> None:
    truth = model(name, restarts=3, max_iter=2, tol=0).fit(corpus)
    assert len(set(truth.diagnostics["objectives"])) == 3


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_parameters_are_kept_and_copied(name: str) -> None:
    found = model(name)
    signature = inspect.signature(type(found).__init__).parameters
    assert all(p.kind is p.KEYWORD_ONLY for n, p in signature.items() if n != "self")
    assert set(found.get_params()) == set(signature) - {"self"}
    copied = type(found)(**found.get_params(deep=False))
    assert all(a is b for a, b in zip(found.get_params().values(), copied.get_params().values()))
    assert repr(copied) == repr(found)
    assert repr(type(found)()) == f"{type(found).__name__}()"
    for parameter, value in found.get_params().items():
        marker = object()
        assert found.set_params(**{parameter: marker}) is found
        assert getattr(found, parameter) is marker
        found.set_params(**{parameter: value})
    with pytest.raises(LascaError, match="nonsense"):
        found.set_params(nonsense=1)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_fitting_changes_no_parameter_and_nothing_else(name: str, corpus: CrowdCorpus) -> None:
    found = model(name)
    before = dict(vars(found))
    found.fit(corpus)
    assert vars(found) == before


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_saved_and_loaded(name: str, corpus: CrowdCorpus, fitted: dict[str, Truth], tmp_path: Path) -> None:
    truth = truth_of(name, corpus, fitted)
    truth.save(tmp_path / "truth")
    again = Truth.load(tmp_path / "truth")
    for field in ("labels", "proba", "confusion", "trace", "offsets"):
        np.testing.assert_array_equal(getattr(again, field), getattr(truth, field))
    assert again.sequences() == truth.sequences()
    assert again.annotators.equals(truth.annotators)
    assert (again.model, again.warnings) == (truth.model, truth.warnings)
    assert set(again.diagnostics) == set(truth.diagnostics)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_predictions_of_models_do_not_vote(name: str, corpus: CrowdCorpus, fitted: dict[str, Truth]) -> None:
    everywhere = np.arange(corpus.n_tokens)
    with_model = corpus.with_annotations(
        [*corpus.annotators, "zz-model"],
        np.concatenate([corpus.annotation_token, everywhere]),
        np.concatenate([corpus.annotation_annotator, np.full(corpus.n_tokens, corpus.n_annotators)]),
        np.concatenate([corpus.annotation_label, np.zeros(corpus.n_tokens, int)]),
    )
    with_model = replace(with_model, kinds=("person",) * corpus.n_annotators + ("model",), votes=())
    truth, again = truth_of(name, corpus, fitted), model(name).fit(with_model)
    check(again, with_model)
    np.testing.assert_allclose(again.proba, truth.proba, atol=SAMPLED.get(name, 0.02))


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_progress_is_told_and_rises(name: str, corpus: CrowdCorpus) -> None:
    told: list[float] = []
    model(name).fit(corpus, progress=lambda share, words: told.append(share))
    assert told
    assert told == sorted(told)
    assert min(told) >= 0
    assert max(told) <= 1 + 1e-9


# --- bad input: a sensible answer or a LascaError that names the trouble; never NaN -------------------------------


def plain(rows: dict[str, list[list[str | None]]], **fields: Any) -> CrowdCorpus:
    words = [[f"w{i}" for i in range(len(s))] for s in next(iter(rows.values()))]
    return CrowdCorpus.from_sequences(words, rows, **fields)


def one_annotator() -> CrowdCorpus:
    gold = crowd(n_sequences=25).label_names(crowd(n_sequences=25).golds["gold"])
    return plain({"ann": [list(s) for s in gold]})


def one_label() -> CrowdCorpus:
    return plain({name: [["O"] * 5, ["O"] * 3] for name in ("ann", "bob", "cy")})


def single_token_annotator() -> CrowdCorpus:
    small = crowd(n_sequences=10, n_annotators=3, coverage=1.0)
    rows = _rows(small)
    rows["zoe"] = [[None] * len(s) for s in rows["annotator-0"]]
    rows["zoe"][0][0] = "B-X"
    return CrowdCorpus.from_sequences([small.sequence(i) for i in range(10)], rows, labels=LABELS)


def one_who_agrees_with_nobody() -> CrowdCorpus:
    small = crowd(n_sequences=15, n_annotators=4, coverage=1.0, accuracy=0.9)
    wrong = {"O": "B-X", "B-X": "O", "I-X": "B-X"}
    gold = small.label_names(small.golds["gold"])
    rows = _rows(small) | {"zed": [[wrong[str(x)] for x in s] for s in gold]}
    return CrowdCorpus.from_sequences([small.sequence(i) for i in range(15)], rows, labels=LABELS)


def all_identical() -> CrowdCorpus:
    gold = crowd(n_sequences=12).label_names(crowd(n_sequences=12).golds["gold"])
    return plain({name: [list(s) for s in gold] for name in ("ann", "bob", "cy")})


def many_labels() -> CrowdCorpus:
    rng = np.random.default_rng(0)
    names = [f"L{t:03d}" for t in range(300)]
    truth = [[names[int(t)] for t in rng.permutation(300)[:10]] for _ in range(30)]
    rows = {
        f"{a}": [[x if rng.random() < 0.8 else names[int(rng.integers(300))] for x in s] for s in truth]
        for a in range(3)
    }
    return plain(rows, labels=names, golds={"gold": truth})


def no_overlap() -> CrowdCorpus:
    gold = crowd(n_sequences=9).label_names(crowd(n_sequences=9).golds["gold"])
    return plain({f"{a}": [list(s) if i % 3 == a else [None] * len(s) for i, s in enumerate(gold)] for a in range(3)})


def lone_token() -> CrowdCorpus:
    return plain({"ann": [["B-X"]], "bob": [["O"]]})


def silent_annotator() -> CrowdCorpus:
    return plain({"ann": [["O", "B-X"]], "bob": [["O", "B-X"]], "silent": [[None, None]]})


def _rows(corpus: CrowdCorpus) -> dict[str, list[list[str | None]]]:
    rows: dict[str, list[list[str | None]]] = {}
    for a, name in enumerate(corpus.annotators):
        flat = np.full(corpus.n_tokens, -1)
        mine = corpus.annotation_annotator == a
        flat[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
        rows[name] = corpus.label_names(flat)
    return rows


BAD = [
    one_annotator,
    one_label,
    single_token_annotator,
    one_who_agrees_with_nobody,
    all_identical,
    no_overlap,
    lone_token,
    silent_annotator,
]


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize("case", BAD, ids=lambda case: case.__name__)
def test_bad_input_gets_a_sensible_answer(name: str, case: Any) -> None:
    corpus = case()
    truth = model(name).fit(corpus)
    check(truth, corpus)
    votes = [set(corpus.annotation_label[a:b].tolist()) for a, b in zip(corpus.token_start, corpus.token_start[1:])]
    unanimous = [i for i, v in enumerate(votes) if len(v) == 1]
    if case in (one_annotator, one_label, all_identical, silent_annotator):
        assert all(truth.labels[i] in votes[i] for i in unanimous)
    if case is one_who_agrees_with_nobody:
        reliability = truth.annotators.column("reliability").to_numpy()
        assert reliability.argmin() == corpus.annotators.index("zed")


@pytest.mark.parametrize("name", ["mv", "ds", "mace", "glad", "sembler", "raykar", "crf-ma", "hc"])
def test_what_the_only_annotator_said_is_the_truth_where_labels_are_not_decoded(name: str) -> None:
    corpus = crowd(n_sequences=12, n_annotators=1, coverage=0.8, accuracy=0.5)
    truth = model(name, **few_steps(name)).fit(corpus)
    assert (truth.labels[corpus.annotation_token] == corpus.annotation_label).all()
    assert (truth.proba[corpus.annotation_token, corpus.annotation_label] == 1).all()


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_three_hundred_labels(name: str) -> None:
    corpus = many_labels()
    truth = model(name, **few_steps(name)).fit(corpus)
    check(truth, corpus)
    assert (truth.labels == corpus.golds["gold"]).mean() > 0.7


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_without_overlap_the_result_carries_a_warning(name: str) -> None:
    assert any("not identifiable" in w for w in model(name).fit(no_overlap()).warnings)
    assert any("one annotator only" in w for w in model(name).fit(one_annotator()).warnings)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_an_empty_corpus_is_an_error_that_says_so(name: str) -> None:
    with pytest.raises(ModelError, match="no tokens"):
        model(name).fit(CrowdCorpus.from_sequences([], {}))
    nobody = CrowdCorpus.from_sequences([["a", "b"]], {"ann": [[None, None]]}, labels=("O",))
    with pytest.raises(ModelError, match="nobody labelled anything"):
        model(name).fit(nobody)
    machines = CrowdCorpus.from_sequences([["a", "b"]], {"gpt": [["O", "O"]]}, roles=("model",))
    with pytest.raises(ModelError, match="voters=all"):
        model(name).fit(machines)
    decided = CrowdCorpus.from_sequences([["a", "b"]], {}, golds={"gold": [["O", "O"]]})
    with pytest.raises(ModelError, match="one gold"):
        model(name).fit(decided)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_token_without_label_takes_no_harm(name: str) -> None:
    corpus = plain({"ann": [["O", None, "B-X"]] * 4, "bob": [["O", None, "B-X"]] * 4, "cy": [["O", None, "O"]] * 4})
    truth = model(name).fit(corpus)
    check(truth, corpus)
    assert truth.labels[0] == corpus.labels.index("O")


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_empty_sequences_are_allowed(name: str) -> None:
    rows = {"ann": [[], ["O", "B-X"], []], "bob": [[], ["O", "B-X"], []]}
    corpus = CrowdCorpus.from_sequences([[], ["a", "b"], []], rows)
    truth = model(name).fit(corpus)
    check(truth, corpus)
    assert truth.sequences() == [[], ["O", "B-X"], []]
