"""The first thing a reader sees: what was read, how sure we are, how much needs a person – in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca import evaluate
from lasca.ambiguity import Ambiguity
from lasca.corpus import CrowdCorpus
from lasca.report.text import count, percent
from lasca.truth import Truth

__all__ = ["headline"]

SURE, UNSURE, AMBIGUOUS = 0.95, 0.8, 0.5


def headline(corpus: CrowdCorpus, truth: Truth, ambiguity: Ambiguity) -> dict[str, Any]:
    """Return sentences and key figures."""
    voted = np.diff(corpus.token_start) > 0
    best = truth.proba[np.arange(corpus.n_tokens), truth.labels].astype(np.float64)
    n = int(voted.sum())
    expected = float(best[voted].mean()) if n else 0.0
    sure = float((best[voted] >= SURE).mean()) if n else 0.0
    unsure = voted & (best < UNSURE)
    if ambiguity.method == "two-truths":
        ambiguous = voted & (np.nan_to_num(ambiguity.score, nan=0.0) >= AMBIGUOUS)
    else:
        ambiguous = ambiguity.mask
    person = int((unsure | ambiguous).sum())
    alpha = evaluate.agreement(corpus.crowd()).krippendorff_alpha
    return {
        "read": _read(corpus, n),
        "sure": (
            f"For {percent(sure)} of the labelled tokens the inferred label is at least {SURE:.0%} sure; "
            f"all in all {percent(expected)} of the labels are expected to be right."
        ).replace("95%", "95 %"),
        "person": _person(person, n, int(ambiguous.sum()), int((unsure & ~ambiguous).sum())),
        "figures": [
            {"value": f"{n:,}", "words": "tokens that somebody labelled"},
            {"value": percent(expected), "words": "of the inferred labels expected to be right"},
            {"value": f"{person:,}", "words": "tokens a person should look at"},
            {
                "value": "–" if np.isnan(alpha) else f"{alpha:.2f}",
                "words": "agreement of the annotators (Krippendorff’s α)",
            },
        ],
        "expected": expected,
        "n_person": person,
    }


def _read(corpus: CrowdCorpus, n: int) -> str:
    people = sum(role == "annotator" for role in corpus.roles)
    models = corpus.n_annotators - people
    who = count(people, "annotator") + (f" and {count(models, 'model')}" if models else "")
    where = count(int(corpus.annotated_sequences.sum()), "sequence")
    words = f"{who} gave {count(corpus.n_annotations, 'label')} to {count(n, 'token')} in {where}"
    per_token = corpus.n_annotations / max(n, 1)
    words += f", {per_token:.1f} per token."
    left = corpus.n_tokens - n
    if left:
        was = "was" if left == 1 else "were"
        words += f" {count(left, 'more token')} {was} read that nobody labelled; what is inferred there is a guess."
    return words


def _person(person: int, n: int, ambiguous: int, unsure: int) -> str:
    if not person:
        return "Nothing stands out that a person would have to decide."
    parts = []
    if ambiguous:
        parts.append(f"{ambiguous:,} where reliable people disagree, so that the guideline may have to decide")
    if unsure:
        parts.append(f"{unsure:,} where the labels leave less than {UNSURE:.0%} certainty".replace("80%", "80 %"))
    share = percent(person / max(n, 1))
    return f"A person should look at {count(person, 'token')} ({share}): {', and '.join(parts)}."
