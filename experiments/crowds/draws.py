"""Small crowds drawn at random from the development rows: is the default good where nobody tuned it?

    python experiments/crowds/draws.py                      # 96 crowds, the default beside the six simple models
    python experiments/crowds/draws.py --first 96 --draws 48 --models robust --kept build/crowds/draws.json

The rows of the bench are few and large; strangers bring small crowds. A draw takes some documents of MTurk val (all
types or one), of NoiseBench's part of it with some machine sources, of PICO's abstracts with gold, or of the tweets,
and two, three, four or all annotators per document. Everything follows from the number of the draw. `--kept` goes on
where a run stopped. Printed: the default minus the best of the six simple models of that draw (which nobody could
have known), and minus each of them, in the mean over draws.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

from crowds import corpora  # noqa: E402
from crowds.corpora import UNIT  # noqa: E402
from crowds.job import fit  # noqa: E402
from crowds.results import SIMPLE  # noqa: E402
from crowds.rows import corpus_of  # noqa: E402
from crowds.scores import metric_of, per_document, scored_tokens  # noqa: E402
from lasca.corpus import CrowdCorpus  # noqa: E402

SOURCES = ("mturk", "mturk", "machines", "machines", "pico", "tweets", "tweets", "one type")
MACHINES = (("llm",), ("weak",), ("distant",), ("llm", "weak"), ("llm", "distant"), ("llm", "weak", "distant"))
ALL_OF_THEM = 99


def drawn(number: int) -> tuple[str, str, CrowdCorpus]:
    """Return a crowd by its number: what it is, its metric, the corpus."""
    rng = np.random.default_rng(1000 + number)
    source = SOURCES[number % len(SOURCES)]
    if source == "tweets":
        name = str(rng.choice(["btc-a-org", "btc-e-org", "btc-e-per"]))
        whole, share = corpus_of(name), float(rng.choice([0.5, 0.7]))
        n_documents = len(whole.metadata[UNIT].codes()[1])
        return f"{source}: {name}, {share:.0%}", "span", voters(some_documents(whole, int(share * n_documents), rng))
    if source == "machines":
        sources, per = MACHINES[int(rng.integers(len(MACHINES)))], (None, 2, 3)[int(rng.integers(3))]
        n = int(rng.choice([10, 30, 80]))
        corpus = some_documents(corpora.machines(sources=sources, per=per), n, rng)
        return f"{source}: {' '.join(sources)}, {n} documents, {per or 'all'} workers each", "span", voters(corpus)
    sizes, metric = ([15, 40, 80], "relaxed") if source == "pico" else ([6, 15, 40, 100], "span")
    whole = corpus_of("pico-191") if source == "pico" else corpora.mturk_folder()
    n = int(rng.choice(sizes))
    corpus = some_documents(whole, n, rng)
    per_each = int(rng.choice([2, 3, 4, ALL_OF_THEM]))
    if per_each < ALL_OF_THEM:
        corpus = corpora.per_document(corpus, per_each, int(rng.integers(1e6)))
    said = f"{source}: {n} documents, {'all' if per_each == ALL_OF_THEM else per_each} annotators each"
    if source == "one type":
        kind = str(rng.choice(["PER", "LOC", "ORG", "MISC"]))
        corpus, said = one_type(corpus, kind), f"{said}, {kind}"
    return said, metric, voters(corpus)


def some_documents(corpus: CrowdCorpus, n: int, rng: np.random.Generator) -> CrowdCorpus:
    """Keep `n` documents that have gold, drawn at random."""
    codes, names = corpus.metadata[UNIT].codes()
    with_gold = np.zeros(len(names), bool)
    with_gold[np.unique(codes[corpus.token_sequence[corpus.golds["gold"] >= 0]])] = True
    kept = rng.permutation(np.flatnonzero(with_gold))[:n]
    return corpus.select(sequences=np.flatnonzero(np.isin(codes, kept)))


def one_type(corpus: CrowdCorpus, kind: str) -> CrowdCorpus:
    """Keep the marks of one type, as if nothing else had been asked for."""
    kept = [label for label in corpus.labels if label == "O" or label.split("-")[1] == kind]
    code = np.array([kept.index(label) if label in kept else kept.index("O") for label in corpus.labels], np.int16)
    gold = corpus.golds["gold"]
    return replace(
        corpus,
        labels=tuple(kept),
        annotation_label=code[corpus.annotation_label].astype(corpus.annotation_label.dtype),
        golds={"gold": np.where(gold >= 0, code[np.maximum(gold, 0)], -1).astype(np.int16)},
    )


def voters(corpus: CrowdCorpus) -> CrowdCorpus:
    """Leave out who has no vote."""
    n = np.bincount(corpus.annotation_annotator, minlength=corpus.n_annotators)
    return corpus.select(annotators=[name for name, votes in zip(corpus.annotators, n) if votes])


def value(corpus: CrowdCorpus, labels: Any, metric: str) -> float:
    """Score labels as the bench does."""
    gold = corpus.golds["gold"].astype(np.int64)
    scored = scored_tokens(corpus, gold, whole=True)
    documents = per_document(corpus, gold, np.asarray(labels).astype(np.int64), scored, spans=True)
    return float(metric_of(np.array(list(documents.values())).sum(axis=0), metric))


def table(found: dict[str, dict[str, Any]], model: str) -> str:
    """Return the differences, by source and in all."""
    lines = [
        f"| crowds | draws | {model} − best simple | below it by 0.5 | worst | "
        + " | ".join(f"− {name}" for name in SIMPLE)
        + " |",
        "|" + "---|" * (5 + len(SIMPLE)),
    ]
    for source in (*dict.fromkeys(SOURCES), "all"):
        own = [d for d in found.values() if source in ("all", d["what"].split(":")[0])]
        if not own:
            continue
        best = np.array([d[model] - max(d[name] for name in SIMPLE) for d in own])
        each = [np.mean([d[model] - d[name] for d in own]) for name in SIMPLE]
        lines.append(
            f"| {source} | {len(own)} | {best.mean():+.2f} | {(best < -0.5).mean():.0%} | {best.min():+.1f} | "
            + " | ".join(f"{x:+.1f}" for x in each)
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Fit what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=96)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--models", default=",".join((*SIMPLE, "robust")))
    parser.add_argument("--kept", type=Path, help="a JSON file of what was measured")
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    if options.kept is not None and options.kept.is_file():
        found = json.loads(options.kept.read_text(encoding="utf-8"))
    models = options.models.split(",")
    for number in range(options.first, options.first + options.draws):
        kept = found.setdefault(str(number), {})
        missing = [model for model in models if model not in kept]
        if missing:
            what, metric, corpus = drawn(number)
            kept |= {"what": what} | {m: value(corpus, fit(m, {}, corpus, 0, 1).labels, metric) for m in missing}
            print(number, json.dumps(kept), file=sys.stderr, flush=True)
            if options.kept is not None:
                options.kept.parent.mkdir(parents=True, exist_ok=True)
                options.kept.write_text(json.dumps(found), encoding="utf-8")
    for model in models:
        if model not in SIMPLE:
            print(table({k: d for k, d in found.items() if {*SIMPLE, model} <= {*d}}, model) + "\n")


if __name__ == "__main__":
    main()
