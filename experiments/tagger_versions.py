"""The default taggers on medical abstracts and tweets, by whichever version of LASCA is on the path.

    python experiments/tagger_versions.py [--neural]
    git worktree add build/v010 621c031 && PYTHONPATH=build/v010/src python experiments/tagger_versions.py

PICO: the 106 abstracts with gold, 70 % of them (drawn with seed 0) to learn from, the rest to score by strict span F1;
learned from gold and from the crowd's token majority (ties to O). Tweets: learned from T-DGA's gold 1, token accuracy
and macro-F1 over the labels of the gold on RITTER-TEST and on the tweets of INHOUSE that T-DGA does not hold. Only
calls that 0.1.0 knew are used, so that both versions run the same script; --neural adds what came later.
The data are found by LASCA_DATA, else ../shared/data.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import lasca
from lasca import CrfTagger, CrowdCorpus, datasets, evaluate

DATA = Path(os.environ.get("LASCA_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
Rows = list[list[str]]


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


def taggers(neural: bool) -> dict[str, Any]:
    """Return the default taggers that this version has."""
    found: dict[str, Any] = {"CrfTagger()": CrfTagger}
    if hasattr(lasca, "HmmTagger"):
        found["HmmTagger()"] = lasca.HmmTagger
    if neural:
        from taggers import bilstm, transformer

        found |= {"BiLstmCrfTagger()": bilstm, "TransformerTagger(MiniLM)": transformer}
    return found


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neural", action="store_true", help="the taggers with a network, too")
    options = parser.parse_args()
    os.environ.setdefault("LASCA_DATA", str(DATA))
    tokens, gold, majority, documents = pico()
    names = sorted(set(documents))
    kept = set(np.random.default_rng(0).permutation(names)[: round(0.7 * len(names))].tolist())
    own = [i for i, name in enumerate(documents) if name in kept]
    other = [i for i, name in enumerate(documents) if name not in kept]
    golds = {"gold": [gold[i] for i in own], "majority": [majority[i] for i in own]}
    abstracts = CrowdCorpus.from_sequences([tokens[i] for i in own], {}, golds=golds)
    tweets = datasets.load("tdga")
    known = {tuple(tweets.sequence(s)) for s in range(tweets.n_sequences)}
    ritter, inhouse = datasets.load("ritter-test", numbers=True), datasets.load("inhouse")
    new = np.array([tuple(inhouse.sequence(s)) not in known for s in range(inhouse.n_sequences)])
    print(f"{len(kept)} + {len(names) - len(kept)} abstracts, {len(own)} + {len(other)} sequences; {new.sum()} tweets")
    print("| tagger | PICO, from gold | PICO, from majority | INHOUSE, new | RITTER |\n|---|---|---|---|---|")
    for name, make in taggers(options.neural).items():
        cells = []
        for source in golds:
            tagger = make().fit(abstracts, source)
            score = evaluate.spans([gold[i] for i in other], tagger.predict([tokens[i] for i in other]))
            cells.append(f"{100 * score.f1:.2f}")
        tagger = make().fit(tweets, "gold1")
        for text, chosen in ((inhouse, new), (ritter, None)):
            found = tagger.predict([text.sequence(s) for s in range(text.n_sequences)])
            result = evaluate.tokens(text.label_names(text.golds["gold"]), found, sequences=chosen)
            macro = np.mean([label.f1 for label in result.per_label.values() if label.n_gold])
            cells.append(f"{100 * result.accuracy:.2f} / {100 * macro:.2f}")
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
