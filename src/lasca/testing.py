"""The contract suites for those who write their own: `check_truth_model(MyModel())`, `check_tagger(MyTagger())`.

They fit the model to small crowds and raise a `ContractError` that says what a user would stumble over. The models that
come with LASCA go through them in its tests. A model that is slow should be given with settings that make it quick.
"""

from __future__ import annotations

import copy
import inspect
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError, ModelError
from lasca.estimator import Estimator
from lasca.tagger import Tagger
from lasca.truth import Truth, TruthModel
from lasca.truth.base import SUPPORTS
from lasca.truth.majority import MajorityVote

__all__ = ["ContractError", "check_tagger", "check_truth_model", "small_crowd"]

LABELS = ("B-X", "I-X", "O")
E = TypeVar("E", bound=Estimator)


class ContractError(AssertionError):
    """A truth model or a tagger does not do what every one owes its users."""


def small_crowd(n_sequences: int = 40, n_annotators: int = 5, seed: int = 0, unlabelled: int = 2) -> CrowdCorpus:
    """Draw BIO sequences, words that hint at the label, and annotators who err in a tenth to a third of the tokens.

    Nobody labelled the first `unlabelled` sequences. The gold is named "gold".
    """
    rng = np.random.default_rng(seed)
    gold: list[list[str]] = []
    for _ in range(n_sequences):
        labels = ["O"]
        for _ in range(int(rng.integers(3, 10))):
            p = (0.3, 0.0, 0.7) if labels[-1] == "O" else (0.1, 0.4, 0.5)
            labels.append(LABELS[int(rng.choice(3, p=p))])
        gold.append(labels)
    words = [[f"{label[0].lower()}{int(rng.integers(8))}" for label in labels] for labels in gold]
    rows: dict[str, list[list[str] | None]] = {}
    for a in range(n_annotators):
        wrong = rng.uniform(0.1, 0.3)
        rows[f"annotator-{a}"] = [
            [LABELS[int(rng.integers(3))] if rng.random() < wrong else label for label in labels]
            if s >= unlabelled and rng.random() < 0.8
            else None
            for s, labels in enumerate(gold)
        ]
    return CrowdCorpus.from_sequences(words, rows, golds={"gold": gold}, labels=LABELS)


def check_truth_model(model: TruthModel, *, accuracy: float = 0.85) -> None:
    """Check a truth model against the contract; raise a ContractError that names the first thing that is wrong.

    `accuracy` is the share of the tokens of a friendly crowd that it must get right.
    """
    if not isinstance(model, TruthModel):
        raise ContractError(f"{model!r} is not a lasca.truth.TruthModel")
    _check_declaration(model)
    _check_parameters(model)
    _check_result(model, accuracy)
    _check_repeatable(model)
    _check_voters(model)
    _check_hard_cases(model)
    _check_refusals(model)
    _check_support(model)


def _need(fine: Any, what: str) -> None:
    if not fine:
        raise ContractError(what)


@contextmanager
def _while(doing: str) -> Iterator[None]:
    """Say what was tried when something else than a ContractError comes up."""
    try:
        yield
    except ContractError:
        raise
    except Exception as error:
        raise ContractError(f"while {doing}: {type(error).__name__}: {error}") from error


def _fresh(model: E) -> E:
    return copy.deepcopy(model)


def _check_declaration(model: TruthModel) -> None:
    name = getattr(model, "name", None)
    _need(isinstance(name, str) and name and name == name.strip(), "the class needs a `name`, a short string")
    _need(model.summary and "\n" not in model.summary, "the class needs a `summary` of one line")
    unknown = set(model.supports) - set(SUPPORTS)
    _need(not unknown, f"`supports` has {sorted(unknown)}; there is: {', '.join(SUPPORTS)}")


def _check_parameters(model: Estimator) -> None:
    signature = inspect.signature(type(model).__init__).parameters
    given = [p for n, p in signature.items() if n != "self"]
    if type(model).__init__ is not object.__init__:
        _need(all(p.kind is p.KEYWORD_ONLY for p in given), "__init__ must take keyword arguments only")
        _need(all(p.default is not p.empty for p in given), "every parameter needs a default")
    params = model.get_params()
    again = type(model)(**params)
    same = all(a is b for a, b in zip(params.values(), again.get_params().values()))
    _need(same, "__init__ must store its arguments unchanged, each under its own name")
    what = "set_params must refuse a parameter that does not exist"
    _refused(lambda: _fresh(model).set_params(no_such_parameter=1), what, LascaError)


def _check_shapes(truth: Truth, corpus: CrowdCorpus, case: str) -> None:
    n, T, L = corpus.n_tokens, corpus.n_labels, corpus.n_annotators
    _need(truth.proba.shape == (n, T), f"{case}: proba must be ({n}, {T}), not {truth.proba.shape}")
    _need(np.isfinite(truth.proba).all() and truth.proba.min() >= 0, f"{case}: proba must be numbers of at least 0")
    _need(np.allclose(truth.proba.sum(axis=1), 1, atol=1e-4), f"{case}: rows of proba must add up to 1")
    fits = truth.labels.shape == (n,) and truth.labels.min() >= 0 and truth.labels.max() < T
    _need(fits, f"{case}: labels must be {n} codes in 0..{T - 1}")
    _need(truth.confusion.shape == (L, T, T), f"{case}: confusion must be ({L}, {T}, {T})")
    rows = truth.confusion.sum(axis=2)
    _need(np.allclose(rows, 1, atol=1e-3) and truth.confusion.min() >= 0, f"{case}: rows of confusion must add up to 1")


def _check_result(model: TruthModel, accuracy: float) -> None:
    corpus = small_crowd()
    told: list[float] = []
    own = _fresh(model)
    before = {name: repr(value) for name, value in vars(own).items()}
    with _while("fitting a friendly crowd"):
        truth = own.fit(corpus, progress=lambda share, words: told.append(share))
    _check_shapes(truth, corpus, "a friendly crowd")
    after = {name: repr(value) for name, value in vars(own).items()}
    _need(after == before, "fit must not change the model: everything it learns goes into the Truth")
    right = float((truth.labels == corpus.golds["gold"])[truth.voted].mean())
    few = f"only {100 * right:.0f} % of the labels are right where annotators err in a fifth of the tokens"
    _need(right >= accuracy, few)
    _need(truth.model == model.name, "the truth must carry the name of the model")
    _need(told == sorted(told) and all(-1e-9 <= x <= 1 + 1e-9 for x in told), "progress must rise from 0 to 1")
    with tempfile.TemporaryDirectory() as folder, _while("saving and loading the truth"):
        truth.save(Path(folder) / "truth")
        again = Truth.load(Path(folder) / "truth")
        _need(np.array_equal(again.proba, truth.proba), "the truth must come back from a folder as it was")


def _check_repeatable(model: TruthModel) -> None:
    corpus = small_crowd(seed=1)
    runs = [_fresh(model).fit(corpus) for _ in range(2)]
    _need(runs[0].proba.tobytes() == runs[1].proba.tobytes(), "the same model on the same data must give the same")
    if "n_threads" in model.get_params():
        threads = [_fresh(model).set_params(n_threads=n).fit(corpus).proba.tobytes() for n in (1, 2)]
        _need(threads[0] == threads[1], "the number of threads must not change a byte")


def _check_voters(model: TruthModel) -> None:
    corpus = small_crowd(seed=2)
    more = corpus.with_annotations(
        [*corpus.annotators, "zz-model"],
        np.concatenate([corpus.annotation_token, np.arange(corpus.n_tokens)]),
        np.concatenate([corpus.annotation_annotator, np.full(corpus.n_tokens, corpus.n_annotators)]),
        np.concatenate([corpus.annotation_label, np.zeros(corpus.n_tokens, int)]),
    )
    more = replace(more, kinds=("person",) * corpus.n_annotators + ("model",), votes=())
    plain, again = _fresh(model).fit(corpus), _fresh(model).fit(more)
    _check_shapes(again, more, "a crowd with a model that does not vote")
    far = float(np.abs(plain.proba - again.proba).max())
    _need(far < 0.2, "predictions of models that do not vote must not count: take the votes of `Votes.of(corpus)`")


def _hard_cases() -> dict[str, CrowdCorpus]:
    def made(rows: dict[str, list[list[str | None]]], **more: Any) -> CrowdCorpus:
        words = [[f"w{i}" for i in range(len(row))] for row in next(iter(rows.values()))]
        return CrowdCorpus.from_sequences(words, rows, **more)

    answer: list[list[str | None]] = [["O", "B-X", "I-X", "O"]] * 6
    return {
        "one annotator": made({"ann": answer}),
        "one label": made({name: [["O"] * 4] * 3 for name in ("ann", "bob")}),
        "one token": made({"ann": [["B-X"]], "bob": [["O"]]}),
        "everybody agrees": made(dict.fromkeys(("ann", "bob", "cy"), answer)),
        "an annotator who said nothing": made({"ann": answer, "bob": answer, "cy": [[None] * 4] * 6}),
        "tokens without labels": made({"ann": [["O", None, "B-X"]] * 4, "bob": [["O", None, "B-X"]] * 4}),
        "empty sequences": made({"ann": [[], ["O", "B-X"], []], "bob": [[], ["O", "B-X"], []]}),
        "nobody shares a token": made(
            {f"{a}": [row if i % 3 == a else [None] * 4 for i, row in enumerate(answer)] for a in range(3)}
        ),
    }


def _check_hard_cases(model: TruthModel) -> None:
    for case, corpus in _hard_cases().items():
        with _while(f"fitting a corpus with {case}"):
            truth = _fresh(model).fit(corpus)
        _check_shapes(truth, corpus, case)
        if case in ("one annotator", "one label", "everybody agrees"):
            said = corpus.annotation_label[corpus.token_start[:-1]]
            _need((truth.labels == said).all(), f"{case}: the truth must be what was said, nothing speaks against it")


def _check_refusals(model: TruthModel) -> None:
    nobody = CrowdCorpus.from_sequences([["a", "b"]], {"ann": [[None, None]]}, labels=("O",))
    nothing = CrowdCorpus.from_sequences([], {})
    _refused(lambda: _fresh(model).fit(nothing), "a corpus with no tokens must be a ModelError")
    _refused(lambda: _fresh(model).fit(nobody), "a corpus with no votes must be a ModelError")


def _refused(act: Callable[[], Any], what: str, kind: type[LascaError] = ModelError) -> None:
    try:
        act()
    except kind:
        return
    except Exception as error:
        raise ContractError(f"{what}, not {type(error).__name__}: {error}") from error
    raise ContractError(what)


def _check_support(model: TruthModel) -> None:
    corpus = small_crowd(seed=3)
    gold = corpus.golds["gold"]
    at = np.random.default_rng(0).choice(corpus.n_tokens, 20, replace=False)
    known = np.full(corpus.n_tokens, -1)
    known[at] = gold[at]
    if "known" not in model.supports:
        _refused(
            lambda: _fresh(model).fit(corpus, known=known), "a model without support for known labels refuses them"
        )
    else:
        with _while("fitting with known labels"):
            truth = _fresh(model).fit(corpus, known=known)
        _need((truth.labels[at] == gold[at]).all(), "known labels must hold")
    proba = np.full((corpus.n_tokens, 3), 1 / 3)
    proba[: corpus.n_tokens // 2] = np.eye(3)[gold[: corpus.n_tokens // 2]] * 0.7 + 0.1
    soft = corpus.with_soft("soft", proba)
    if "soft" not in model.supports:
        _refused(lambda: _fresh(model).fit(soft), "a model that does not support soft votes refuses them")
    else:
        with _while("fitting with soft votes"):
            heard = _fresh(model).fit(soft)
            _check_shapes(heard, soft, "soft votes")
        far = np.abs(heard.proba - _fresh(model).fit(corpus).proba)[: corpus.n_tokens // 2].max()
        _need(far > 1e-4, "soft votes must count (`votes.soft`): a model that does not hear them must not support them")
    old, new = corpus.select(sequences=np.arange(25)), corpus.select(sequences=np.arange(25, corpus.n_sequences))
    with _while("going on from an earlier truth"):
        before = _fresh(model).fit(old)
        if "update" in model.supports:
            after = _fresh(model).fit(new, history=before)
            _check_shapes(after, new, "history")
    if "update" in model.supports:
        far = np.abs(after.proba - _fresh(model).fit(new).proba).max()
        _need(far > 1e-6, "what an earlier truth learned must count: a model that does not go on from it cannot update")
    else:
        _refused(lambda: _fresh(model).fit(new, history=before), "a model that does not support history refuses it")


# --- taggers ----------------------------------------------------------------------------------------------------------


def check_tagger(tagger: Tagger, *, accuracy: float = 0.85) -> None:
    """Check a tagger against the contract; raise a ContractError that names the first thing that is wrong.

    `accuracy` is the share of the labels that it must get right of a text it was trained on, in which words tell them.
    """
    if not isinstance(tagger, Tagger):
        raise ContractError(f"{tagger!r} is not a lasca.tagger.Tagger")
    _need(tagger.kind, "the class needs a `kind`, a short string")
    _check_parameters(tagger)
    crowd = small_crowd()
    words = [crowd.sequence(s) for s in range(crowd.n_sequences)]
    gold = crowd.label_names(crowd.golds["gold"])
    corpus = CrowdCorpus.from_sequences(words, {}, golds={"gold": gold}, labels=("A", *LABELS))  # nobody uses A
    with _while("learning from a gold"):
        fitted = _fresh(tagger).fit(corpus, "gold")
    found = _check_predictions(fitted, words, corpus)
    right = float(np.mean([a == b for had, said in zip(gold, found) for a, b in zip(had, said)]))
    few = f"only {100 * right:.0f} % of the labels are right (`targets` are codes of `active`, not of `labels`)"
    _need(right >= accuracy, few)
    again = np.concatenate(_fresh(tagger).fit(corpus, "gold").predict_proba(words))
    same = again.tobytes() == np.concatenate(fitted.predict_proba(words)).tobytes()
    _need(same, "the same tagger on the same data must give the same")
    _check_saved(fitted, words)
    with _while("learning from a truth, of which some tokens are unknown"):
        taught = _fresh(tagger).fit(crowd, MajorityVote().fit(crowd))
    _check_predictions(taught, words, crowd)


def _check_predictions(fitted: Tagger, words: list[list[str]], corpus: CrowdCorpus) -> list[list[str]]:
    _need(tuple(fitted.labels) == corpus.labels, "`labels` must be those of the corpus, unused ones included")
    sentences = [*words, [], ["never", "seen"]]
    with _while("predicting, also for an empty sentence and for words that were never seen"):
        found, proba = fitted.predict(sentences), fitted.predict_proba(sentences)
    lengths = [len(sentence) for sentence in sentences]
    _need([len(row) for row in found] == lengths, "predict must give a label for each token of each sentence")
    _need({x for row in found for x in row} <= set(corpus.labels), "predict must give names of labels")
    shapes = [(n, corpus.n_labels) for n in lengths]
    _need([np.shape(x) for x in proba] == shapes, "predict_proba must give an array (tokens, labels) for each sentence")
    rows = np.concatenate(proba)
    fine = (rows >= 0).all() and np.allclose(rows.sum(axis=1), 1, atol=1e-3)
    _need(fine, "rows of predict_proba must be at least 0 and add up to 1")
    return found


def _check_saved(fitted: Tagger, words: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, _while("saving and loading the tagger"):
        path = Path(folder) / "tagger"
        fitted.save(path, card="A card.")
        kind = json.loads((path / "tagger.json").read_text(encoding="utf-8")).get("kind", "crf")
        _need(kind == fitted.kind, "save must write a tagger.json with the `kind`")
        _need((path / "model-card.md").is_file(), "save must write its `card` as model-card.md")
        again: Any = type(fitted).load(path)  # type: ignore[attr-defined]
        _need(again.get_params() == fitted.get_params(), "a loaded tagger must have the parameters it was saved with")
        same = again.labels == fitted.labels and again.predict(words) == fitted.predict(words)
        _need(same, "a loaded tagger must predict as it did")
        what = "save must refuse a folder that is there, unless overwrite=True (lasca.files.whole_folder)"
        _refused(lambda: fitted.save(path), what, LascaError)
