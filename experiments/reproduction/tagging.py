"""Training taggers for the tables, and scoring them on other texts; nothing about a tagger is chosen by gold.

Word-only features: one feature a token, the word. How the word is written (as it stands, or in small letters) and the
L2 penalty are chosen for a training set by two-fold cross-validation against the labels of *majority vote* on it, and
used for all its rows alike. Default features: the tagger's defaults, nothing chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lasca import evaluate, schemes
from lasca.corpus import CrowdCorpus
from lasca.tagger import CrfTagger
from lasca.truth import MajorityVote

__all__ = ["FEATURES", "choose_word_features", "predicted", "span_scores", "token_scores", "train"]

FEATURES = ("word", "default")
WORDS = ("word[0]", "lower[0]")
PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
FOLDS = 2


def choose_word_features(corpus: CrowdCorpus) -> dict[str, Any]:
    """Return the word feature and the penalty that predict majority votes of held-out sequences best."""
    votes = MajorityVote().fit(corpus)
    fold = np.arange(corpus.n_sequences) % FOLDS
    given = votes.sequences()
    tried: list[dict[str, Any]] = []
    for templates in WORDS:
        for l2 in PENALTIES:
            found: list[list[str]] = [[] for _ in given]
            for number in range(FOLDS):
                known = np.where((fold != number)[corpus.token_sequence], votes.labels, -1).astype(np.int16)
                tagger = CrfTagger(templates=templates, l2=l2, n_threads=1)
                tagger.fit(replace(corpus, golds={"votes": known}), "votes")
                held_out = np.flatnonzero(fold == number).tolist()
                for s, labels in zip(held_out, tagger.predict([corpus.sequence(s) for s in held_out])):
                    found[s] = labels
            tried.append({"templates": templates, "l2": l2, "score": _score(corpus, given, found)})
    best = max(tried, key=lambda row: float(row["score"]))
    return {"templates": best["templates"], "l2": best["l2"], "tried": tried}


def _score(corpus: CrowdCorpus, given: list[list[str]], found: list[list[str]]) -> float:
    if schemes.detect(corpus.labels) is not None:
        return 100 * evaluate.spans(given, found).f1
    return 100 * evaluate.tokens(given, found).accuracy


def train(corpus: CrowdCorpus, truth: Any, features: str, words: Mapping[str, Any], **more: Any) -> CrfTagger:
    """Train a tagger on a truth (or a gold's name) with word-only or default features."""
    chosen = {"templates": words["templates"], "l2": words["l2"]} if features == "word" else {}
    return CrfTagger(n_threads=1, **chosen, **more).fit(corpus, truth)


def predicted(tagger: CrfTagger, corpus: CrowdCorpus) -> list[list[str]]:
    """Return what the tagger says of a corpus's sequences."""
    return tagger.predict([corpus.sequence(s) for s in range(corpus.n_sequences)])


def token_scores(corpus: CrowdCorpus, found: list[list[str]], sequences: Any = None) -> dict[str, float]:
    """Return accuracy, macro-F1 over the labels that occur in the gold, and weighted F1, in per cent."""
    score = evaluate.tokens(corpus.label_names(corpus.golds["gold"]), found, sequences=sequences)
    occurring = [label.f1 for label in score.per_label.values() if label.n_gold]
    values = {"accuracy": score.accuracy, "macro_f1": float(np.mean(occurring)), "weighted_f1": score.weighted_f1}
    return {name: 100 * value for name, value in values.items()}


def span_scores(corpus: CrowdCorpus, found: list[list[str]]) -> dict[str, float]:
    """Return precision, recall and F1 of spans, read as seqeval does by default, in per cent."""
    score = evaluate.spans(corpus.label_names(corpus.golds["gold"]), found)
    return {"precision": 100 * score.precision, "recall": 100 * score.recall, "f1": 100 * score.f1}
