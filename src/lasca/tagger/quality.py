"""How good is a tagger, without gold: a choice between candidates by held-out votes, and the model card that says so.

*Which tagger for this crowd?* Cross-validation over documents, with held-out votes as the judge: never gold. Each
candidate is trained on the truth of all documents but one fold's, and foretells the votes on that fold
(`lasca.tagger.prepare`). Differences are judged by a bootstrap over documents. Candidates are given from the simplest
to the richest; a richer one is chosen only if it beats the best so far by two standard errors. Votes of people who copy
each other, or who all miss the same things, cannot tell a better tagger from one that has learned their mistakes.

*The model card*: what a tagger learned from, how, and how good it is by votes it has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca import __version__, evaluate, schemes
from lasca.arrays import Array
from lasca.errors import ModelError, ParameterError
from lasca.estimator import Progress, check_int, generator
from lasca.tagger.base import Tagger
from lasca.tagger.prepare import vote_score_of
from lasca.truth.text_models import deal

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = ["Choice", "choose_tagger", "model_card"]

_DRAWS = 500


@dataclass(frozen=True)
class Choice:
    """What cross-validation found: the name of the best candidate, and how each did."""

    best: str
    scores: Mapping[str, float]
    """The mean log score of a held-out vote."""
    differences: Mapping[str, tuple[float, float]]
    """By how much a candidate beats the one that was best before it, and the standard error of that."""

    def __str__(self) -> str:
        lines = [f"{name}: {value:.5f}" for name, value in self.scores.items()]
        return "\n".join([*lines, f"chosen: {self.best}"])


def choose_tagger(
    corpus: CrowdCorpus,
    truth: Any,
    candidates: Mapping[str, Tagger],
    *,
    folds: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Return which of the candidates – from the simplest to the richest – foretells held-out votes best."""
    check_int("folds", folds, low=2)
    if not candidates:
        raise ParameterError("candidates", candidates, "taggers by name")
    documents = corpus.documents
    n_documents = int(documents.max(initial=-1)) + 1
    if n_documents < folds:
        raise ModelError(f"{folds} folds need as many documents", got=n_documents, hint="Give fewer folds")
    votes = vote_score_of(corpus, truth, np.ones(corpus.n_tokens, dtype=np.bool_))
    if votes is None:
        raise ModelError("there are no votes to judge taggers by", hint="Give a corpus with votes and its truth")
    fold = deal(corpus, documents, folds)
    of_token = documents[corpus.token_sequence]
    per_document: dict[str, Array] = {}
    n_votes: Array = np.zeros(n_documents)
    for number, (name, candidate) in enumerate(candidates.items()):
        tagger = type(candidate)(**candidate.get_params())  # the candidate itself stays as it was
        proba = np.zeros((corpus.n_tokens, corpus.n_labels), dtype=np.float32)
        for k in range(folds):
            _fit_without(tagger, corpus, truth, fold == k)
            own = np.flatnonzero(fold == k)
            found = tagger.predict_proba([corpus.sequence(s) for s in own.tolist()], **tagger.told_of(documents[own]))
            for s, rows in zip(own.tolist(), found):
                proba[corpus.offsets[s] : corpus.offsets[s + 1]] = rows
            if progress is not None:
                progress((number * folds + k + 1) / (len(candidates) * folds), name)
        total, n = votes.per_token(proba, corpus.n_tokens)
        per_document[name] = np.bincount(of_token, total, n_documents)
        n_votes = np.bincount(of_token, n, n_documents)
    return _decide(per_document, n_votes, generator(seed))


def _decide(per_document: dict[str, Array], n_votes: Array, rng: np.random.Generator) -> Choice:
    draws = rng.integers(0, len(n_votes), size=(_DRAWS, len(n_votes)))
    scores = {name: float(values.sum() / max(n_votes.sum(), 1)) for name, values in per_document.items()}
    names = list(per_document)
    best, differences = names[0], {}
    for name in names[1:]:
        gain = per_document[name] - per_document[best]
        spread = gain[draws].sum(axis=1) / np.maximum(n_votes[draws].sum(axis=1), 1)
        mean, error = float(gain.sum() / max(n_votes.sum(), 1)), float(spread.std())
        differences[name] = (mean, error)
        if mean > 2 * error:
            best = name
    return Choice(best, scores, differences)


def _fit_without(tagger: Tagger, corpus: CrowdCorpus, truth: Any, left_out: Array) -> None:
    """Fit on the truth of the other sequences; those left out have no label at all."""
    rest = np.flatnonzero(~left_out)
    part = corpus.select(sequences=rest)
    rows = ~left_out[corpus.token_sequence]
    codes = truth.codes if hasattr(truth, "codes") else truth.labels
    known = SimpleNamespace(
        labels=codes[rows], proba=truth.proba[rows], confusion=truth.confusion,
        voted=getattr(truth, "voted", np.ones(len(rows), dtype=np.bool_))[rows],
    )  # fmt: skip
    tagger.fit(part, known)


def model_card(
    tagger: Any,
    corpus: CrowdCorpus,
    target: Any,
    *,
    source: str = "",
    votes: Choice | None = None,
    gold: tuple[str, CrowdCorpus, str] | None = None,
) -> str:
    """Return the card of a fitted tagger as Markdown.

    `target` is what it was fitted to: a Truth, or a gold's name. `votes` are its scores on held-out votes; `gold` names
    a corpus and a gold of it to score the tagger on, which should be texts that it has not seen.
    """
    lines = [
        f"# A tagger for {_kinds(tagger.labels)}",
        "",
        f"Made by LASCA {__version__}: `{tagger!r}`.",
        "",
        "## What it learned from",
        "",
        f"- {corpus.n_sequences:,} sequences, {corpus.n_tokens:,} tokens" + (f", from {source}" if source else ""),
    ]
    if isinstance(target, str):
        lines.append(f"- the gold labels {target!r}")
    else:
        known = np.asarray(target.voted).sum() if hasattr(target, "voted") else len(target.labels)
        lines.append(
            f"- the labels that `{target.model}` inferred from {corpus.n_annotations:,} votes of {corpus.n_annotators} "
            f"annotators on {int(known):,} tokens; no gold"
        )
        lines.extend(f"- warning: {text}" for text in target.warnings)
    lines.extend(f"- lexicons: {text}" for text in getattr(tagger, "lexicon_sources", ()))
    lines += ["", "## How good it is", ""]
    if votes is not None:
        name, value = next(iter(votes.scores.items()))
        lines.append(
            f"- mean log score of a vote on documents it was not trained on: {value:.4f} ({name}; 0 is best, cross-"
            "validation over documents, through the annotators' confusion)"
        )
    if gold is not None:
        lines.extend(_scores(tagger, *gold))
    if votes is None and gold is None:
        lines.append("- not measured: `lasca train --check` scores it by held-out votes, `--test DATA` by gold labels")
    lines += ["", "Its probabilities are the model's own, and not calibrated on other texts."]
    return "\n".join(lines) + "\n"


def _kinds(labels: tuple[str, ...]) -> str:
    if schemes.detect(labels) is None:
        return ", ".join(labels)
    types = dict.fromkeys(schemes.split_label(name)[1] for name in labels)
    return ", ".join(name or "spans" for name in types if name or len(types) == 1)


def _scores(tagger: Any, title: str, corpus: CrowdCorpus, name: str) -> list[str]:
    expert = corpus.label_names(corpus.golds[name])
    found = tagger.predict([corpus.sequence(s) for s in range(corpus.n_sequences)], **tagger.told_of(corpus.documents))
    tokens = evaluate.tokens(expert, found)
    lines = [f"- {title}, gold {name!r}, {tokens.n_tokens:,} tokens: accuracy {100 * tokens.accuracy:.2f} %"]
    if schemes.detect(tagger.labels) is not None:
        spans = evaluate.spans(expert, found, mode="lenient")
        lines[0] += f", span F1 {100 * spans.f1:.2f} % (P {100 * spans.precision:.2f}, R {100 * spans.recall:.2f})"
        lines.extend(f"  - {kind}: F1 {100 * s.f1:.2f} % ({s.n_gold} in gold)" for kind, s in spans.per_type.items())
    return lines
