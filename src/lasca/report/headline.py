"""The first screen: the result in spans, what to beware of, who is good, what to decide first, what to do next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betaincinv

from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.errors import count
from lasca.report.render import clean, context, percent
from lasca.review.assign import documents_of
from lasca.review.finish import to_own
from lasca.review.queue import REASONS, Queue, said, wordless, words_of
from lasca.review.spans import Labels, pieces, said_by_everybody
from lasca.truth import Truth

__all__ = ["first_items", "headline", "next_steps", "span_scores", "warnings_on_top"]

FIRST, READINGS = 6, 3
LEAST = 0.005
"""What a decision must be expected to remove to be worth a row: less is shown as 0.00."""
SIDE, READING = 42, 96


def headline(corpus: CrowdCorpus, truth: Truth, queue: Queue) -> dict[str, Any]:
    """Return sentences and key figures."""
    labels = Labels.of(corpus)
    crowd, voted = corpus.crowd(), truth.voted
    n = int(voted.sum())
    best = truth.proba[np.arange(corpus.n_tokens), truth.labels].astype(np.float64)
    sure = float((best[voted] >= 0.95).mean()) if n else 0.0
    if labels.scheme is None:
        result, what = n, "token was labelled" if n == 1 else "tokens were labelled"
    else:
        found = labels.spans(truth.labels.astype(np.int64), corpus.offsets)
        result, what = int(voted[found.start].sum()), "spans were inferred"
        what = "span was inferred" if result == 1 else what
    alpha = evaluate.agreement(crowd).krippendorff_alpha
    half = _half(queue)
    wrong = "wrong labels" if labels.scheme is None else "spans that are wrong or missing"
    expected = f"{queue.errors:,.0f}" if queue.errors >= 10 else f"{queue.errors:.1f}"
    person = "Nothing is left that a person would have to decide."
    if len(queue) == 1:
        person = "There is 1 item that a person could decide."
    elif len(queue):
        first = "the first is" if half == 1 else f"the first {half:,} are"
        person = (
            f"Of {count(len(queue), 'item')} that a person could decide, {first} expected to remove half of the errors "
            "that decisions can remove."
        )
    return {
        "read": _read(corpus, crowd, n),
        "sure": (
            f"{result:,} {what}; the model expects {expected} errors among them ({wrong}), and is at least 95 % "
            f"sure of {percent(sure)} of the labelled tokens. These are expectations: an audit measures them."
        ),
        "person": person,
        "figures": [
            {"value": f"{result:,}", "words": what},
            {"value": expected, "words": "errors the model expects among them"},
            {"value": f"{len(queue):,}", "words": "decisions for a person, in the queue"},
            {
                "value": "–" if np.isnan(alpha) else f"{alpha:.2f}",
                "words": "agreement of the annotators (Krippendorff’s α)",
            },
        ],
        "expected": queue.errors,
        "n_person": len(queue),
    }


def _half(queue: Queue) -> int:
    """Return how many of the first items make up half of what all are expected to remove."""
    own = np.cumsum([item.area.errors for item in queue.items])
    return int(np.searchsorted(own, own[-1] / 2)) + 1 if len(own) and own[-1] > 0 else len(own)


def _read(corpus: CrowdCorpus, crowd: CrowdCorpus, n: int) -> str:
    """Say who gave how many labels; what those said who do not vote is counted apart."""
    people = sum(role == "annotator" for role in crowd.roles)
    models = crowd.n_annotators - people
    who = count(people, "annotator") + (f" and {count(models, 'model')}" if models else "")
    where = count(int(crowd.annotated_sequences.sum()), "sequence")
    words = f"{who} gave {count(crowd.n_annotations, 'label')} to {count(n, 'token')} in {where}"
    words += f", {crowd.n_annotations / max(n, 1):.1f} per token."
    silent = corpus.n_annotators - crowd.n_annotators
    if silent:
        kind = (
            "model" if all(role == "model" for role, votes in zip(corpus.roles, corpus.votes) if not votes) else "voice"
        )
        more = corpus.n_annotations - crowd.n_annotations
        words += f" {count(silent, kind)} that {'does' if silent == 1 else 'do'} not vote gave {more:,} more."
    left = corpus.n_tokens - n
    if left:
        was = "was" if left == 1 else "were"
        nobody = "nobody who votes" if silent else "nobody"
        words += f" {count(left, 'more token')} {was} read that {nobody} labelled; what is inferred there is a guess."
    return words


def warnings_on_top(corpus: CrowdCorpus, truth: Truth, said: list[str]) -> list[str]:
    """Return what a reader must know before anything else, the worst first, then the other warnings."""
    first = []
    labels = Labels.of(corpus)
    given, inferred = (
        set(labels.read.kind[np.unique(codes)].tolist()) for codes in (corpus.annotation_label, truth.labels)
    )
    never = [clean(labels.types[k] or "the one label", 40) for k in sorted(given - inferred - {-1})]
    if never:
        shown = ", ".join(never[:6]) + (f" and {len(never) - 6} more" if len(never) > 6 else "")
        first.append(f"Given by somebody but never inferred: {shown}.")
    worst = [w for w in said if "before it converged" in w or "repeat each other" in w or "cop" in w.lower()]
    return [*first, *worst, *(w for w in said if w not in worst)]


def span_scores(corpus: CrowdCorpus, truth: Truth) -> dict[int, dict[str, Any]] | None:
    """Return precision and recall of each annotator's spans against the inferred ones, with 95 % intervals.

    A span counts when borders and type are the same; recall is over inferred spans whose first token they labelled.
    None where labels are of no scheme.
    """
    labels = Labels.of(corpus)
    if labels.scheme is None:
        return None
    given, who = said_by_everybody(corpus.with_voters(corpus.annotators), labels)  # models that do not vote, too
    inferred = labels.spans(truth.labels.astype(np.int64), corpus.offsets)
    width, kinds = corpus.n_tokens + 1, len(labels.types) + 1

    def key(spans: Any) -> Any:
        return (spans.start * width + spans.stop) * kinds + spans.kind

    right = np.isin(key(given), key(inferred))
    A = corpus.n_annotators
    starts = np.zeros(corpus.n_tokens, bool)
    starts[inferred.start] = True
    seen = np.bincount(corpus.annotation_annotator[starts[corpus.annotation_token]], minlength=A)
    n = np.bincount(who, minlength=A)
    hits = np.bincount(who[right], minlength=A)
    return {
        a: {"given": int(n[a]), "precision": _share(hits[a], n[a]), "recall": _share(hits[a], seen[a])}
        for a in range(A)
        if n[a] or seen[a]
    }


def _share(hits: float, n: float) -> dict[str, float] | None:
    """Return a share with its 95 % interval (Jeffreys)."""
    if n <= 0:
        return None
    hits = min(hits, n)
    low = float(betaincinv(hits + 0.5, n - hits + 0.5, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 0.5, n - hits + 0.5, 0.975)) if hits < n else 1.0
    return {"value": float(hits / n), "low": low, "high": high}


def first_items(corpus: CrowdCorpus, queue: Queue) -> list[dict[str, Any]]:
    """Return the first decisions of the queue that remove anything to speak of, one row each."""
    rows, labels = [], Labels.of(corpus)
    for item in [item for item in queue.items[:FIRST] if item.gain >= LEAST] or queue.items[:1]:
        area = item.area
        words = pieces(corpus, *corpus.offsets[area.sequence : area.sequence + 2].tolist())
        blind = wordless([word.strip() for word in words])
        before, after = ("", "") if blind else context(words, area.start, area.stop)
        readings = [said(labels, words, area.readings[i]) for i in area.offered[:READINGS]]
        cut = [_ends(text) for text in readings]
        rows.append(
            {
                "before": _words_of(before, -SIDE),
                "words": clean(words_of(corpus, area), 120),
                "after": _words_of(after, SIDE),
                "sequence": clean(corpus.sequence_ids[area.sequence], 40),
                "candidates": [clean(text, 160) for text in (cut if len(set(cut)) == len(cut) else readings)],
                "more": max(len(area.readings) - READINGS, 0),
                "why": REASONS[item.reason],
                "gain": item.gain,
                "alike": item.alike,
            }
        )
    return rows


def _words_of(text: str, width: int) -> str:
    """Return the first (or with a negative width the last) whole words of a text, with a sign where it was cut."""
    if len(text) <= abs(width):
        return text
    if width < 0:
        return "… " + text[width:].split(" ", 1)[-1]
    return text[:width].rsplit(" ", 1)[0] + " …"


def _ends(text: str) -> str:
    """Return both ends of a long reading: readings of the same area may differ in the last word only."""
    return text if len(text) <= READING else f"{_words_of(text, READING // 2)} {_words_of(text, -READING // 2)[2:]}"


def next_steps(corpus: CrowdCorpus, queue: Queue) -> list[dict[str, str]]:
    """Return what to do next, with the commands."""
    steps = []
    if len(queue):
        steps.append({"why": "Decide what people must decide, best first", "command": "lasca review OUT"})
        steps.append({"why": "Or fill in queue.csv and take it back", "command": "lasca decide OUT OUT/queue.csv"})
    else:
        steps.append({"why": "Audit what the model is sure of", "command": "lasca review OUT"})
    steps.append({"why": "Know what the rest is worth", "command": "lasca accept OUT --error 0.02"})
    crowd = corpus.crowd()
    per_token = crowd.n_annotations / max(int((np.diff(crowd.token_start) > 0).sum()), 1)
    if per_token < 3:
        budget = 10 ** max(1, int(math.log10(max(corpus.n_sequences, 10))))
        document, names = documents_of(crowd)
        of_vote = document[crowd.token_sequence[crowd.annotation_token]]
        done = len(np.unique(crowd.annotation_annotator.astype(np.int64) * len(names) + of_vote))
        few = crowd.n_annotators * len(names) - done < len(names) / 10  # hardly anything is left that they may get
        who = " --annotators NEW,NAMES" if few else ""
        steps.append(
            {"why": "Get more votes where they help most", "command": f"lasca next OUT --budget {budget}{who} -o TASKS"}
        )
    finish = " ".join(("lasca finish OUT -o FINAL", *to_own(corpus)))
    steps.append({"why": "Write final labels with a data card", "command": finish})
    return steps
