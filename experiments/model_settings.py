"""What settings of the truth models are worth: the tables of docs/models/settings.md.

    python experiments/model_settings.py --write docs/models/settings.md

MTurk (`lasca datasets`): fitted to the sentences that somebody annotated, one thread, seed 0; span F1 by seqeval's
default reading. T-DGA: simulated crowds in which annotators fail on the same tokens, accuracy. No
model sees a gold label.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lasca
from lasca import datasets, simulate
from lasca.truth import TruthModel

MTURK: tuple[TruthModel, ...] = (
    lasca.MajorityVote(),
    lasca.MajorityVote(ties="O"),
    lasca.MajorityVote(ties="first"),
    lasca.Mace(),
    lasca.Mace(max_iter=10),
    lasca.Mace(variational=False),
    lasca.Glad(),
    lasca.Glad(class_prior="learned"),
    lasca.DawidSkene(),
    lasca.DawidSkene(tol=1e-8),
    lasca.DawidSkene(variational=True),
    lasca.Sembler(),
    lasca.Raykar(),
    lasca.CrfMa(),
    lasca.HierarchicalClusters(),
    lasca.HmmCrowd(),
    lasca.HmmCrowd(crowd="vector"),
    lasca.HmmCrowd(words=False),
    lasca.HmmCrowd(variational=False),
    lasca.BayesianSequence(),
    lasca.BayesianSequence(decode="marginal"),
    lasca.BayesianSequence(singles=True),
    lasca.BayesianSequence(words=False),
    lasca.BayesianSequence(annotator_model="cm"),
    lasca.BayesianSequence(annotator_model="spam"),
    lasca.BayesianSequence(annotator_model="cv"),
    lasca.BayesianSequence(annotator_model="acc"),
    lasca.SequenceClusters(),
    lasca.RobustSequence(),
)
HARD: tuple[TruthModel, ...] = (
    lasca.MajorityVote(),
    lasca.DawidSkene(),
    lasca.BayesianSequence(),
    lasca.BayesianSequence(annotator_model="spam"),
)


def name_of(model: TruthModel) -> str:
    """Return the model as somebody would write it who leaves the number of threads alone."""
    return f"`{str(model).replace(', n_threads=1', '').replace('n_threads=1', '')}`"


def mturk() -> Iterator[str]:
    """Yield the table of MTurk."""
    whole = datasets.load("conll2003-mturk")
    corpus = whole.select(sequences=np.flatnonzero(whole.annotated_sequences))
    yield "| model | all | val | test | precision, recall on test | cross entropy on test | ECE on test |"
    yield "|---|---|---|---|---|---|---|"
    for model in MTURK:
        if "n_threads" in model.get_params():
            model.set_params(n_threads=1)
        (line,) = lasca.compare(corpus, [model], by="folder")
        parts, test = line.scores, line.scores["test"]
        f1 = " | ".join(f"{100 * (parts[part].f1 or 0):.1f}" for part in ("all", "val", "test"))
        assert test.precision is not None
        assert test.recall is not None
        yield (
            f"| {name_of(model)} | {f1} | {100 * test.precision:.1f}, {100 * test.recall:.1f} "
            f"| {test.cross_entropy:.2f} | {test.ece:.3f} |"
        )


def hard() -> Iterator[str]:
    """Yield the table of crowds that fail on the same tokens: accuracy against the gold."""
    gold = datasets.load("tdga")
    crowds = {
        groups: simulate.crowd(gold, gold="gold1", groups=groups, errors="difficulty", rho=0.4, seed=0)
        for groups in ("ca1", "ca2", "ca3")
    }
    yield f"| model | {' | '.join(crowds)} |"
    yield "|---|---|---|---|"
    for model in HARD:
        cells = [f"{100 * model.fit(crowd).score(crowd, 'gold1').accuracy:.1f}" for crowd in crowds.values()]
        yield f"| {name_of(model)} | {' | '.join(cells)} |"


def main() -> None:
    """Print the tables, or put them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page with a place for each table: <!-- settings: NAME -->")
    path = parser.parse_args().write
    for table in (hard, mturk):
        lines = []
        for line in table():
            print(line, flush=True)
            lines.append(line)
        if path is not None:
            page = path.read_text("utf-8")
            head, mark, rest = page.partition(f"<!-- settings: {table.__name__} -->\n")
            if not mark:
                raise SystemExit(f"{path} has no place for {table.__name__!r}")
            path.write_text(head + mark + "\n".join(lines) + "\n" + rest[rest.index("<!-- end -->") :], "utf-8")


if __name__ == "__main__":
    main()
