"""Table 2: taggers trained on the inferred truth of T-DGA, on other tweets."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reproduction.jobs import Results
from reproduction.page import Block, Heading, Table, Text
from reproduction.pages.common import HMM, LA_SCA, MODELS, NAMES, TWO_TRUTHS, beside_the_paper, number
from reproduction.paper import CROWDS, TABLE_2
from reproduction.statistics import Mean, mean
from reproduction.tweets import GOLD

__all__ = ["ROWS", "cell", "scores", "table_2"]

ROWS = (*MODELS[:6], "la-sca", *MODELS[6:], TWO_TRUTHS, HMM, GOLD)
SHOWN = NAMES | {"hc": "HC-CLL", GOLD: "gold 1"}
SUMMED = ("mv", "la-sca", "hc-seq", GOLD)
CORPORA = {
    "RITTER": "RITTER-TEST, 118 tweets",
    "INHOUSE": "INHOUSE, 200 tweets",
    "INHOUSE, new": "INHOUSE without the tweets that T-DGA holds too",
}
SCORES = {"accuracy": "accuracy", "macro_f1": "macro-F1", "weighted_f1": "weighted F1"}


def scores(
    results: Results, model: str, crowd: str, features: str, corpus: str, score: str = "macro_f1"
) -> list[float]:
    """Return a score of the tagger that learned from a model's truth, for each seed; the HMM has its own features."""
    if model == HMM:
        found = results.values("newer-taggers", (HMM, corpus, score), kind="table-1", groups=crowd)
        return found if features == "word" else []
    if model in LA_SCA:
        path = (features, LA_SCA[model], corpus, score)
        return results.values("objectives", path, kind="table-1", groups=crowd)
    return results.values("tweets", ("taggers", features, corpus, score), groups=crowd, model=model)


def cell(results: Results, model: str, crowd: str, features: str, corpus: str, score: str = "macro_f1") -> Mean:
    """Return the mean over the seeds."""
    return mean(scores(results, model, crowd, features, corpus, score))


def table_2(results: Results) -> list[Block]:
    """Write the section."""
    n_new = results.values("tweets", ("taggers", "word", "INHOUSE, new", "n_sequences"))[0]
    blocks: list[Block] = [
        Heading("Table 2: F1 on other tweets"),
        Text(
            "Taggers (a linear-chain CRF) trained on T-DGA with the truth inferred from the crowds of table 1, scored "
            f"on RITTER-TEST and INHOUSE. {200 - n_new:.0f} of the 200 tweets of INHOUSE are in T-DGA as well: it is "
            f"reported whole, as in the paper, and without them ({n_new:.0f} tweets). HC-CLL: the truth of HC, "
            "trained by conditional likelihood; LA-SCA: the same truth, trained by the cost-sensitive objective with "
            "the label confusion of the paper's rank-1 model, which is `lasca run --preset la-sca` "
            "([how](run.md#the-papers-own-way---preset-la-sca)), or with that which two-truths finds (`--method "
            "two-truths` beside it); HmmTagger: the same truth, an HMM of counts alone (`words=1`) in the place of "
            "the CRF, which reads words and, where a word is new, its suffix; all other rows: likelihood. The "
            "last row learns from gold 1 itself, with the same features: what a truth without errors would give (it "
            "has a spread because the word-only features are chosen anew for each crowd, and is never bold)."
        ),
        Text(
            "**What the paper leaves open, and what was chosen.** The paper names neither the features nor the F1. "
            "**Word-only**: the word is the only feature; whether it is taken in small letters, and the L2 penalty, "
            "are chosen on each crowd by cross-validation against majority votes, for all rows alike "
            f"({_chosen(results)}); no gold is looked at. Default features have their default penalty. "
            f"{_levels(results)} Macro-F1 is the mean over the labels that occur in the test gold. RITTER-TEST's Penn "
            "tags are mapped to the universal ones as INHOUSE has them (USR, HT, URL are NOUN, RT is X, TO is ADP, "
            "PRP$ is DET); users, addresses and numbers are written as T-DGA writes them."
        ),
    ]
    for at, corpus in ((0, "RITTER"), (3, "INHOUSE")):
        blocks.append(
            beside_the_paper(
                ROWS,
                TABLE_2,
                lambda row, crowd, corpus=corpus: cell(results, row, crowd, "word", corpus),  # type: ignore[misc]
                at=at,
                names=SHOWN,
                caption=f"{CORPORA[corpus]}: macro-F1 with word-only features (%).",
            )
        )
    blocks.append(Text(_summary(results)))
    blocks.append(Heading("All scores", 3))
    for features in ("word", "default"):
        for corpus, words in CORPORA.items():
            count = f" ({n_new:.0f} tweets)" if corpus == "INHOUSE, new" else ""
            kind = "word-only features" if features == "word" else "default features"
            blocks.append(_all_scores(results, features, corpus, f"{words}{count}, {kind} (%)."))
    return blocks


def _all_scores(results: Results, features: str, corpus: str, caption: str) -> Table:
    header = ("model", *(f"{crowd} {name}" for crowd in CROWDS for name in SCORES.values()))
    rows = [
        (SHOWN[row], *(cell(results, row, c, features, corpus, s).shown(1) for c in CROWDS for s in SCORES))
        for row in ROWS
        if row != HMM or features == "word"
    ]
    return Table(header, tuple(rows), caption)


def _chosen(results: Results) -> str:
    found = Counter(
        f"{'small letters' if r['templates'].startswith('lower') else 'as written'}, L2 {r['l2']}"
        for r in results.select("choose", kind="table-1")
    )
    return "; ".join(f"{words} for {n} crowd{'s' * (n > 1)}" for words, n in found.most_common())


def _levels(results: Results) -> str:
    """Say how far our figures lie from the paper's as a whole."""
    words = []
    for at, corpus in ((0, "RITTER"), (3, "INHOUSE")):
        ours = {
            features: np.mean([cell(results, row, c, features, corpus).value for row in TABLE_2 for c in CROWDS])
            for features in ("word", "default")
        }
        paper = np.mean([row[at + i] for row in TABLE_2.values() for i in range(3)])
        words.append(
            f"on {corpus} {ours['word']:.1f} with words and {ours['default']:.1f} with default features (the paper's: "
            f"{paper:.1f})"
        )
    return f"The mean macro-F1 over the paper's rows and crowds is {', '.join(words)}: its features remain unknown."


def _summary(results: Results) -> str:
    reached = dict.fromkeys(ROWS, 0)
    missed, levels = [], []
    for at, corpus in ((0, "RITTER"), (3, "INHOUSE")):
        for i, crowd in enumerate(CROWDS):
            target = TABLE_2["la-sca"][at + i]
            values = {row: cell(results, row, crowd, "word", corpus).value for row in ROWS}
            for row in ROWS:
                reached[row] += values[row] >= target
            if values["la-sca"] < target:
                missed.append(f"{corpus} {crowd} ({values['la-sca']:.2f} against {target:.2f})")
        found = {row: float(np.mean([cell(results, row, c, "word", corpus).value for c in CROWDS])) for row in SUMMED}
        levels.append(f"{corpus} {', '.join(f'{SHOWN[row]} {number(value)}' for row, value in found.items())}")
    return (
        f"With word-only features our LA-SCA is at or above the paper's LA-SCA in {reached['la-sca']} of 6 cells"
        + (f" (not: {'; '.join(missed)})" if missed else "")
        + f"; so is majority vote in {reached['mv']}, the model with sequences in {reached['hc-seq']}: the level is "
        f"the tagger's more than the truth's. Means over the crowds: {'; '.join(levels)}."
    )
