"""The default taggers on medical abstracts and tweets, by whichever version of LASCA is on the path.

    python experiments/tagger_versions.py [--only "bilstm;transformer"] [--seeds 3]
    python experiments/tagger_versions.py --develop --only "crf;hmm;bilstm" --seeds 2
    git worktree add build/v010 621c031 && PYTHONPATH=build/v010/src python experiments/tagger_versions.py

PICO: the 106 abstracts with gold, 70 % of them (drawn with seed 0) to learn from, the rest to score by strict span F1;
learned from gold and from the crowd's token majority (ties to O). Tweets: learned from T-DGA's gold 1, token accuracy
and macro-F1 over the labels of the gold on RITTER-TEST and on the tweets of INHOUSE that T-DGA does not hold. Only
calls that 0.1.0 knew are used, so that both versions run the same script; --only names others. With --seeds a tagger
that has a network is trained with seeds 0, 1, …, a row for each. With --develop nothing of that is looked at: scores
are of cross-validation in three parts, on T-DGA and on the abstracts to learn from (macro-F1 without FLAG, which occurs
twice). Behind the scores of every row but the first stands the 95 % interval of the difference to the first, over
documents (tweets) drawn again.

The data are found by LASCA_DATA, else ../shared/data.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lasca
from lasca import CrfTagger, CrowdCorpus, datasets, evaluate

DATA = Path(os.environ.get("LASCA_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
Rows = list[list[str]]
PARTS = 3
DRAWS = 2000
"""How often documents are drawn again for an interval."""


def pico() -> tuple[Rows, Rows, Rows, list[str]]:
    """Return tokens, gold, the crowd's majority and the document of each sequence that has gold."""
    table = pq.read_table(DATA / "pico" / "pico-participants.parquet")
    table = table.filter(pc.is_valid(table["gold"]))
    votes: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    tokens: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
    document: dict[str, str] = {}
    for row in table.to_pylist():
        tokens[row["sequence"]][row["position"]] = (row["token"], row["gold"])
        votes[row["sequence"], row["position"]][row["label"]] += 1
        document[row["sequence"]] = row["document"]
    names = sorted(tokens)
    ordered = {name: [tokens[name][k] for k in sorted(tokens[name])] for name in names}
    majority = [
        [max(sorted(votes[name, k].items()), key=lambda pair: (pair[1], pair[0] == "O"))[0] for k in sorted(of_name)]
        for name, of_name in sorted(tokens.items())
    ]
    golds = [[gold for _, gold in ordered[name]] for name in names]
    return [[word for word, _ in ordered[name]] for name in names], golds, majority, [document[name] for name in names]


def divided(documents: list[str]) -> tuple[list[str], list[int], list[int]]:
    """Return the documents to learn from, which sequences are theirs, and which are to score."""
    names = sorted(set(documents))
    kept = np.random.default_rng(0).permutation(names)[: round(0.7 * len(names))].tolist()
    own = [i for i, name in enumerate(documents) if name in set(kept)]
    return kept, own, [i for i, name in enumerate(documents) if name not in set(kept)]


def taggers(only: str, seeds: int) -> dict[str, Callable[[], Any]]:
    """Return what makes the taggers of these names, at their defaults, by the names of their rows."""
    found: dict[str, Callable[[], Any]] = {}
    for name in only.split(";"):
        if name == "crf":
            found["CrfTagger()"] = CrfTagger
        elif name == "hmm":
            found["HmmTagger()"] = lasca.HmmTagger
        else:
            from taggers import bilstm, transformer

            kind = {"bilstm": bilstm, "transformer": transformer}[name]
            for seed in range(seeds):
                found[f"{name}, seed {seed}"] = partial(kind, seed=seed)
    return found


def span_cell(gold: Rows, found: Rows) -> str:
    return f"{100 * evaluate.spans(gold, found).f1:.2f}"


def token_cell(gold: Rows, found: Rows, left_out: tuple[str, ...] = ()) -> str:
    """Return accuracy / macro-F1 over the labels that gold has."""
    result = evaluate.tokens(gold, found)
    macro = np.mean([label.f1 for name, label in result.per_label.items() if label.n_gold and name not in left_out])
    return f"{100 * result.accuracy:.2f} / {100 * macro:.2f}"


def difference(gold: Rows, found: Rows, documents: list[Any], first: Rows) -> str:
    """Return the 95 % interval of the difference to what the first tagger found, over documents drawn again."""
    spans = any(label.startswith("B-") for row in gold for label in row)
    labels = sorted({label for row in gold for label in row})
    names = sorted(set(documents))
    place = [names.index(name) for name in documents]
    counts = np.zeros((2, len(names), 3, 1 if spans else len(labels)))
    for which, rows in enumerate((found, first)):
        for i, (right, said) in enumerate(zip(gold, rows)):
            if spans:
                result = evaluate.spans([right], [said])
                counts[which, place[i], :, 0] += (result.n_gold, result.n_predicted, result.n_correct)
                continue
            for a, b in zip(right, said):
                counts[which, place[i], 0, labels.index(a)] += 1
                if b in labels:
                    counts[which, place[i], 1, labels.index(b)] += 1
                    counts[which, place[i], 2, labels.index(a)] += a == b
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
    n_gold, n_found, same = np.moveaxis(np.einsum("rd,wdkl->rwkl", drawn, counts), 2, 0)
    f1 = np.where(n_gold > 0, 2 * same / np.maximum(n_gold + n_found, 1), np.nan)
    figures = [np.nanmean(f1, axis=2)]
    if not spans:
        figures.insert(0, same.sum(axis=2) / n_gold.sum(axis=2))
    cells = [100 * np.quantile(one[:, 0] - one[:, 1], (0.025, 0.975)) for one in figures]
    return "[" + "; ".join(f"{low:+.1f}, {high:+.1f}" for low, high in cells) + "]"


def in_parts(
    make: Callable[[], Any], corpus: CrowdCorpus, source: str, part: np.ndarray[Any, Any]
) -> tuple[Rows, Rows]:
    """Return gold and what taggers say that have learned from the other parts."""
    gold, found = [], []
    names = corpus.label_names(corpus.golds[source])
    for k in range(PARTS):
        own = np.flatnonzero(part == k).tolist()
        tagger = make().fit(corpus.select(sequences=np.flatnonzero(part != k)), source)
        gold += [list(names[i]) for i in own]
        found += tagger.predict([corpus.sequence(i) for i in own])
    return gold, found


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="crf", help="crf, hmm, bilstm, transformer, separated by ;")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds networks are trained with")
    parser.add_argument("--develop", action="store_true", help="cross-validation on what is there to learn from")
    options = parser.parse_args()
    os.environ.setdefault("LASCA_DATA", str(DATA))
    tokens, gold, majority, documents = pico()
    kept, own, other = divided(documents)
    golds = {"gold": [gold[i] for i in own], "majority": [majority[i] for i in own]}
    abstracts = CrowdCorpus.from_sequences([tokens[i] for i in own], {}, golds=golds)
    tweets = datasets.load("tdga")
    chosen = taggers(options.only, options.seeds)
    if options.develop:
        print("| tagger | PICO, from gold | T-DGA |\n|---|---|---|")
        of_abstract = np.array([kept.index(documents[i]) % PARTS for i in own])
        of_tweet = np.random.default_rng(1).permutation(tweets.n_sequences) % PARTS
        for name, make in chosen.items():
            spans = span_cell(*in_parts(make, abstracts, "gold", of_abstract))
            labels = token_cell(*in_parts(make, tweets, "gold1", of_tweet), ("FLAG",))
            print(f"| `{name}` | {spans} | {labels} |", flush=True)
        return
    known = {tuple(tweets.sequence(s)) for s in range(tweets.n_sequences)}
    inhouse = datasets.load("inhouse")
    new = [s for s in range(inhouse.n_sequences) if tuple(inhouse.sequence(s)) not in known]
    texts = (inhouse.select(sequences=np.array(new)), datasets.load("ritter-test", numbers=True))
    n_other = len(set(documents)) - len(kept)
    print(f"{len(kept)} + {n_other} abstracts, {len(own)} + {len(other)} sequences; {len(new)} tweets")
    print("| tagger | PICO, from gold | PICO, from majority | INHOUSE, new | RITTER |\n|---|---|---|---|---|")
    first: list[Rows] = []
    for name, make in chosen.items():
        said: list[tuple[Rows, Rows, list[Any]]] = []
        for source in golds:
            tagger = make().fit(abstracts, source)
            found = tagger.predict([tokens[i] for i in other])
            said.append(([gold[i] for i in other], found, [documents[i] for i in other]))
        tagger = make().fit(tweets, "gold1")
        for text in texts:
            found = tagger.predict([text.sequence(s) for s in range(text.n_sequences)])
            said.append(([list(row) for row in text.label_names(text.golds["gold"])], found, list(range(len(found)))))
        scored = (span_cell, span_cell, token_cell, token_cell)
        cells = [score(right, found) for score, (right, found, _) in zip(scored, said)]
        if first:  # beside the tagger of the first row
            cells = [f"{cell} {difference(*one, other)}" for cell, one, other in zip(cells, said, first)]
        first = first or [found for _, found, _ in said]
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
