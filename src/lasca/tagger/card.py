"""The model card of a tagger: what it learned from, how, and how good it is by votes it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lasca import __version__, evaluate, schemes
from lasca.tagger.choose import Choice

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = ["model_card"]


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
    found = tagger.predict([corpus.sequence(s) for s in range(corpus.n_sequences)])
    tokens = evaluate.tokens(expert, found)
    lines = [f"- {title}, gold {name!r}, {tokens.n_tokens:,} tokens: accuracy {100 * tokens.accuracy:.2f} %"]
    if schemes.detect(tagger.labels) is not None:
        spans = evaluate.spans(expert, found, mode="lenient")
        lines[0] += f", span F1 {100 * spans.f1:.2f} % (P {100 * spans.precision:.2f}, R {100 * spans.recall:.2f})"
        lines.extend(f"  - {kind}: F1 {100 * s.f1:.2f} % ({s.n_gold} in gold)" for kind, s in spans.per_type.items())
    return lines
