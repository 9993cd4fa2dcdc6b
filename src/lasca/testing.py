"""The contract suite for truth models, for those who write their own: `check_truth_model(MyModel())`.

It fits the model to small crowds and raises a `ContractError` that says what a user would stumble over. The models that
come with LASCA go through it in its tests. A model that is slow should be given with settings that make it quick.
"""

from __future__ import annotations

import copy
import inspect
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError, ModelError
from lasca.truth import Truth, TruthModel
from lasca.truth.base import SUPPORTS

__all__ = ["ContractError", "check_truth_model", "small_crowd"]

LABELS = ("B-X", "I-X", "O")


class ContractError(AssertionError):
    """A truth model does not do what every truth model owes its users."""


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


def _fresh(model: TruthModel) -> TruthModel:
    return copy.deepcopy(model)


def _check_declaration(model: TruthModel) -> None:
    name = getattr(model, "name", None)
    _need(isinstance(name, str) and name and name == name.strip(), "the class needs a `name`, a short string")
    _need(model.summary and "\n" not in model.summary, "the class needs a `summary` of one line")
    unknown = set(model.supports) - set(SUPPORTS)
    _need(not unknown, f"`supports` has {sorted(unknown)}; there is: {', '.join(SUPPORTS)}")


def _check_parameters(model: TruthModel) -> None:
    signature = inspect.signature(type(model).__init__).parameters
    given = [p for n, p in signature.items() if n != "self"]
    if type(model).__init__ is not object.__init__:
        _need(all(p.kind is p.KEYWORD_ONLY for p in given), "__init__ must take keyword arguments only")
        _need(all(p.default is not p.empty for p in given), "every parameter needs a default")
    params = model.get_params()
    again = type(model)(**params)
    same = all(a is b for a, b in zip(params.values(), again.get_params().values()))
    _need(same, "__init__ must store its arguments unchanged, each under its own name")
    try:
        _fresh(model).set_params(no_such_parameter=1)
    except LascaError:
        return
    raise ContractError("set_params must refuse a parameter that does not exist")


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


def _refused(act: Callable[[], Any], what: str) -> None:
    try:
        act()
    except ModelError:
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
