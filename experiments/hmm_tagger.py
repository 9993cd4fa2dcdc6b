"""HmmTagger beside CrfTagger: with little to learn from, and how long training takes.

    python experiments/hmm_tagger.py

Nothing is scored but what there is to learn from elsewhere: tweets of T-DGA (gold 1) and the abstracts that
tagger_versions.py learns from. A few of them, drawn eight times, teach; others are scored, 200 tweets or 30 abstracts.
`unlabelled` has also read the text of these. CPU seconds of training are the least of three runs; the sentences of
CoNLL-2003's crowd with their gold are scored on the other sentences of eng.train.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import lasca
import tagger_versions as versions
import taggers
from lasca import CrfTagger, CrowdCorpus, HmmTagger, evaluate

DRAWS = 8
KINDS = {"CrfTagger()": {}, "HmmTagger()": {}, "… unlabelled": {}, "… words=1": {"words": 1.0}}


def score(corpus: CrowdCorpus, gold: str, taught: Any, asked: Any, kind: str) -> list[float]:
    """Return accuracy and macro-F1 of labels without a scheme, else the F1 of spans, in per cent."""
    text = [corpus.sequence(int(i)) for i in asked]
    made = CrfTagger() if kind == "CrfTagger()" else HmmTagger(**KINDS[kind])
    more = {"unlabelled": text} if kind == "… unlabelled" else {}
    found = made.fit(corpus.select(sequences=taught), gold, **more).predict(text)
    names = corpus.label_names(corpus.golds[gold])
    right = [list(names[int(i)]) for i in asked]
    if lasca.schemes.detect(corpus.labels) is None:
        return [float(cell) for cell in versions.token_cell(right, found, ("FLAG",)).split(" / ")]
    return [100 * evaluate.spans(right, found).f1]


def few(corpus: CrowdCorpus, gold: str, unit: Any, sizes: tuple[int, ...], n_asked: int) -> None:
    """Print a table: a row for each tagger, a column for each number of units (tweets, abstracts)."""
    print("| tagger | " + " | ".join(map(str, sizes)) + " |\n|---" + "|---" * len(sizes) + "|")
    for kind in KINDS:
        cells = []
        for size in sizes:
            found = []
            for draw in range(DRAWS):
                order = np.random.default_rng(draw).permutation(len(set(unit.tolist())))
                taught, asked = (np.flatnonzero(np.isin(unit, part)) for part in (order[:size], order[-n_asked:]))
                found.append(score(corpus, gold, taught, asked, kind))
            cells.append(" / ".join(f"{value:.1f}" for value in np.mean(found, axis=0)))
        print(f"| `{kind}` | {' | '.join(cells)} |", flush=True)


def seconds(tagger: Any, corpus: CrowdCorpus, gold: str) -> float:
    """Return the CPU seconds of training."""
    runs = []
    for _ in range(3):
        start = time.process_time()
        tagger.fit(corpus, gold)
        runs.append(time.process_time() - start)
    return min(runs)


def main() -> None:
    """Print Markdown tables."""
    os.environ.setdefault("LASCA_DATA", str(versions.DATA))
    tweets = lasca.datasets.load("tdga")
    tokens, gold, _, documents = versions.pico()
    kept, own, _ = versions.divided(documents)
    abstracts = CrowdCorpus.from_sequences([tokens[i] for i in own], {}, golds={"gold": [gold[i] for i in own]})
    few(tweets, "gold1", np.arange(tweets.n_sequences), (5, 10, 20, 40, 80, 160), 200)
    few(abstracts, "gold", np.array([kept.index(documents[i]) for i in own]), (5, 10, 20, 40), 30)
    crowd = taggers.annotated(taggers.read("conll2003-mturk"))
    news, right, _ = taggers.texts(crowd)["dev"]
    print("| CPU seconds | abstracts | tweets | CoNLL-2003 | its span F1 |\n|---|---|---|---|---|")
    for tagger in (CrfTagger(), HmmTagger()):
        times = [seconds(tagger, *pair) for pair in ((abstracts, "gold"), (tweets, "gold1"), (crowd, "gold"))]
        cells = [*(f"{value:.2f}" for value in times), f"{100 * evaluate.spans(right, tagger.predict(news)).f1:.2f}"]
        print(f"| `{type(tagger).__name__}()` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
