"""Are copying annotators found, and nobody else? Simulated crowds with and without copies.

    python experiments/crowds/families.py              # 120 crowds with copies, 200 without
    python experiments/crowds/families.py --crowds 30  # fewer of each
    python experiments/crowds/families.py -o build/crowds/families.md   # the page of the bench takes it from there

With copies: one to three annotators copy another at rates of 0.8, 0.9 and 1; scored are pairs of annotators. Without:
everybody works alone, but with common errors and tokens or spans that are hard for all; counted are crowds in which a
family is found all the same. Parts of speech are those of T-DGA and the demo, spans those of the demo and the
Chinese export.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

from crowds import corpora  # noqa: E402
from lasca import datasets, simulate  # noqa: E402
from lasca.corpus import CrowdCorpus  # noqa: E402
from lasca.corpus.votes import Block  # noqa: E402
from lasca.truth import Votes  # noqa: E402
from lasca.truth.families import declared_families, find_families  # noqa: E402
from lasca.truth.guards import Look  # noqa: E402

RATES = (0.8, 0.9, 1.0)


def texts() -> dict[str, tuple[CrowdCorpus, str]]:
    """Return the corpora with gold that crowds are simulated on, and the name of their gold."""
    return {
        "pos, T-DGA": (datasets.load("tdga", corpora.data_folder()), "gold1"),
        "pos, demo": (datasets.demo.load("pos"), "gold"),
        "spans, demo": (datasets.demo.load("ner"), "gold"),
        "spans, Chinese": (corpora.chinese(), "gold"),
    }


def settings(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Draw a crowd: its size and strength, how many label a sequence, and what is hard for all."""
    people = {"high": int(rng.integers(3, 9)), "medium": int(rng.integers(1, 5)), "low": int(rng.integers(0, 4))}
    found: dict[str, Any] = {"groups": people, "common": float(rng.choice([0.0, 0.03, 0.067, 0.1]))}
    n = sum(people.values())
    if rng.random() < 0.5:
        found["annotators_per_sequence"] = int(rng.integers(min(4, n), n + 1))
    if kind.startswith("spans"):
        return found | {"errors": "spans", "wrong": str(rng.choice(["prior", "shared"]))}
    if rng.random() < 0.5:
        return found | {"errors": "difficulty", "rho": float(rng.uniform(0.2, 0.6))}
    return found | {"wrong": str(rng.choice(["prior", "shared", "annotator"]))}


def crowds(n: int, copies: bool) -> Iterator[tuple[str, float, simulate.Simulation]]:
    """Yield crowds in turn over the texts and the rates of copying."""
    known = texts()
    for i in range(n):
        kind = list(known)[i % len(known)]
        rng = np.random.default_rng((i, int(copies)))
        rate = RATES[(i // len(known)) % len(RATES)] if copies else 0.0
        corpus, gold = known[kind]
        made = settings(kind, rng)
        if copies:
            made |= {"copying": int(rng.integers(1, 4)), "copy_rate": rate}
        yield kind, rate, simulate.simulation(corpus, simulate.CrowdSettings(gold=gold, seed=i, **made))


def found_pairs(corpus: CrowdCorpus) -> set[tuple[str, str]]:
    """Return the pairs of annotators that are put into one family."""
    votes = Votes.of(corpus)
    everything = Block(votes, 0, votes.n_tokens)
    look = Look(corpus.labels, declared_families(corpus.families))
    crowd = look.crowd(look.summarise(everything))
    known = crowd.outside, crowd.knows, crowd.kind_of
    families = find_families(lambda pairs: pairs.summarise(everything), corpus.families, *known)
    groups = [[corpus.annotators[i] for i in members] for members in families.members()]
    return {pair for group in groups for pair in combinations(sorted(group), 2)}


def true_pairs(crowd: simulate.Simulation) -> set[tuple[str, str]]:
    """Return who copies whom, and who copy the same one."""
    groups: dict[str, set[str]] = {}
    for name, source in zip(crowd.corpus.annotators, crowd.source):
        if source:
            groups.setdefault(source, {source}).add(name)
    return {pair for group in groups.values() for pair in combinations(sorted(group), 2)}


def main() -> None:
    """Print two Markdown tables, and write them where the page of the bench looks for them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowds", type=int, default=0, help="how many crowds of each kind")
    parser.add_argument("-o", "--output", type=Path, help="write the tables here as well")
    options = parser.parse_args()
    counts: dict[tuple[str, float], list[int]] = {}
    for kind, rate, crowd in crowds(options.crowds or 120, copies=True):
        found, true = found_pairs(crowd.corpus), true_pairs(crowd)
        for key in ((kind, rate), ("all", rate), ("all", -1.0)):
            line = counts.setdefault(key, [0, 0, 0])
            for j, n in enumerate((len(found & true), len(found), len(true))):
                line[j] += n
    lines = ["| texts | copy rate | pairs | precision | recall |", "|---|---|---|---|---|"]
    for (kind, rate), (right, found_n, true_n) in sorted(counts.items()):
        precision, recall = right / max(found_n, 1), right / max(true_n, 1)
        lines.append(f"| {kind} | {'all' if rate < 0 else rate} | {true_n} | {precision:.3f} | {recall:.3f} |")
    wrong: dict[str, list[int]] = {}
    for kind, _, crowd in crowds(options.crowds or 200, copies=False):
        for key in (kind, "all"):
            line = wrong.setdefault(key, [0, 0])
            line[0] += bool(found_pairs(crowd.corpus))
            line[1] += 1
    lines += ["", "| texts without copies | crowds | with a family all the same |", "|---|---|---|"]
    for kind, (n, of) in sorted(wrong.items()):
        lines.append(f"| {kind} | {of} | {n} ({n / of:.1%}) |")
    print("\n".join(lines))
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
