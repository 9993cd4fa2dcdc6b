"""Cost-sensitive training, settled: does a cost for each pair of labels make better taggers, and which form of it?

    python experiments/cost_sensitive.py                                   # prints the table
    python experiments/cost_sensitive.py --write docs/cost-sensitive.md    # puts it between the page's marks
    python experiments/cost_sensitive.py --kept results.json --units 8     # the first eight; the rest another time

Everything below that could be chosen (crowds, seeds, truth, features, penalties, objectives, their constants, what is
scored) was fixed, and committed, before any of it was run. Seeds 5 and up were used nowhere before. Truth: Dawid–Skene.
Costs: w = 1 − the confusion that two-truths finds. Likelihood is the row that all others are compared with, pair by
pair: the same crowd, truth, features and penalty; intervals are Student's, 95 %, over the crowds. Units are run in the
order of `UNITS`; with --kept they are kept in a file as they are finished, and a stopped run goes on from there.

The perceptrons came later, when seven units had been seen: Plank's loss as its authors have it, at the defaults of
`crf.perceptron`, beside the perceptron without weights.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from lasca import crf, evaluate, simulate
from lasca.ambiguity import find_ambiguity
from lasca.confusion import DISAGREEMENTS, disagreement, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.crf.decode import viterbi
from lasca.tagger.prepare import scheme_constraint
from lasca.truth.dawid_skene import DawidSkene
from reproduction import entities, tweets

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
CROWDS = tuple((groups, seed) for groups in ("ca1", "ca3") for seed in (5, 6, 7))
"""Simulated over T-DGA as those of table 2 of the reproduction."""
PARTS = (10, 11, 12, 13)
"""Random choices of documents of the MTurk corpus, by their seeds."""
PART_SIZE = 400
UNITS = tuple(unit for pair in zip(CROWDS, PARTS) for unit in pair) + CROWDS[len(PARTS) :]
"""What is run, in this order: where time is short, the first ones."""
FEATURES = {"word-only": ("lower[0]", 0.1), "default": ("pos", 0.5)}
ENTITY_FEATURES = ("ner", 0.5)
SCALES = (0.5, 1.0, 2.0)
"""From which the learned scale of softmax-margin is chosen, by two-fold cross-validation against the truth."""
WHY = "why agreement-f1 fails"
ANNEALED = 10
"""Iterations of eq. 18 after likelihood has converged."""
OBJECTIVES = {
    "likelihood": "what all others are compared with",
    "eq. 18": "the printed cost-sensitive objective",
    "eq. 18, bounded at 0.1": "the right sequence costs 0.1 instead of 0: nothing is gained beyond certainty",
    "eq. 18, bounded at 1": "the same with 1: an easy sequence pulls as under likelihood",
    "eq. 18, annealed": f"likelihood first, then {ANNEALED} iterations of eq. 18",
    "softmax-margin": "costs per position, in the exponent",
    "softmax-margin, scale learned": f"costs times one of {SCALES}, chosen on the crowd's truth",
    "softmax-margin, confused pairs only": "costs w − 1: nothing but where the crowd confuses",
    "agreement": "Plank's loss, 1 − the confusion probability of two annotators",
    "agreement-f1": "Plank's loss, the F1 of two annotators on the right label",
}
PERCEPTRONS = {
    "perceptron": "averaged; what the two below are compared with",
    "perceptron, agreement": "updates weighted by 1 − the confusion probability of two annotators",
    "perceptron, agreement-f1": "updates weighted by the F1 of two annotators on the right label",
}

Array = np.ndarray[Any, Any]


class Trainer:
    """One crowd with its truth and features: weights by objective."""

    def __init__(self, corpus: CrowdCorpus, templates: str, l2: float) -> None:
        self.corpus, self.l2 = corpus, l2
        self.truth = DawidSkene(n_threads=1).fit(corpus)
        self.targets, self.T = np.asarray(self.truth.labels), corpus.n_labels
        self.extractor = crf.Extractor(templates=templates)
        self.features = self.extractor.fit(list(corpus.tokens[0 : corpus.n_tokens]), corpus.offsets)
        self.constraint = scheme_constraint(list(corpus.labels), self.targets, corpus.offsets)

    @cached_property
    def costs(self) -> Array:
        """What taking one label for another costs, by the ambiguity of the crowd."""
        ambiguity = find_ambiguity(self.corpus, self.truth, n_threads=1)
        return crf.cost_matrix(label_confusion(self.corpus, self.truth, ambiguity).matrix, self.T)

    def fit(self, objective: str = "likelihood", costs: Array | None = None, **more: Any) -> crf.Weights:
        """Train as `CrfTagger` does."""
        settings: dict[str, Any] = {"l2": self.l2, "states": "observed", "tol": 1e-4} | more
        return crf.fit(self.features, self.targets, self.T, objective=objective, costs=costs, **settings)

    def weights(self, name: str) -> crf.Weights:
        """Return the weights by the name of an objective."""
        diagonal = np.eye(self.T)
        if name == "likelihood":
            return self.fit()
        if name == "eq. 18":
            return self.fit("cost-sensitive", self.costs)
        if name.startswith("eq. 18, bounded"):
            return self.fit("cost-sensitive", self.costs + float(name.split()[-1]) * diagonal)
        if name == "eq. 18, annealed":
            return self.fit("cost-sensitive", self.costs, init=self.fit(), max_iter=ANNEALED)
        if name == "softmax-margin":
            return self.fit("softmax-margin", self.costs)
        if name == "softmax-margin, scale learned":
            return self.fit("softmax-margin", self.learned_scale() * self.costs)
        if name == "softmax-margin, confused pairs only":
            return self.fit("softmax-margin", self.costs - (1 - diagonal))
        kind = DISAGREEMENTS.get(name.removeprefix("perceptron, "))
        gamma = None if kind is None else crf.cost_matrix(disagreement(self.corpus, kind), self.T)
        if name in PERCEPTRONS:
            return crf.perceptron(self.features, self.targets, self.T, gamma=gamma)
        return self.fit("agreement", gamma)

    def learned_scale(self) -> float:
        """Return the scale whose taggers agree best with the truth of the other half."""
        fold = np.arange(self.corpus.n_sequences) % 2
        right = []
        for scale in SCALES:
            agreed = 0
            for k in range(2):
                found = self.fit("softmax-margin", scale * self.costs, sequences=np.flatnonzero(fold != k))
                labels = viterbi(self.features, found, sequences=np.flatnonzero(fold == k), constraint=self.constraint)
                agreed += int((labels == self.targets)[labels >= 0].sum())
            right.append(agreed)
        return SCALES[int(np.argmax(right))]

    def predict(self, weights: crf.Weights, text: CrowdCorpus) -> list[list[str]]:
        """Tag a text."""
        features = self.extractor.transform(list(text.tokens[0 : text.n_tokens]), text.offsets)
        labels = viterbi(features, weights, constraint=self.constraint)
        names = [self.corpus.labels[code] for code in labels.tolist()]
        return [names[a:b] for a, b in zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist())]


def macro_f1(text: CrowdCorpus, found: list[list[str]], sequences: Array | None = None) -> float:
    """Return macro-F1 over the labels of the gold, in per cent."""
    score = evaluate.tokens(text.label_names(text.golds["gold"]), found, sequences=sequences)
    return 100 * float(np.mean([label.f1 for label in score.per_label.values() if label.n_gold]))


def span_f1(text: CrowdCorpus, found: list[list[str]]) -> float:
    """Return span F1, in per cent."""
    return 100 * evaluate.spans(text.label_names(text.golds["gold"]), found).f1


def tweet_scorers() -> dict[str, Callable[[Any], float]]:
    """Return what is scored of a tagger of tweets: RITTER-TEST, and the tweets of INHOUSE that T-DGA does not hold."""
    ritter, inhouse = tweets.unseen().values()
    seen = {tuple(tweets.tdga().sequence(s)) for s in range(tweets.tdga().n_sequences)}
    new = np.array([tuple(inhouse.sequence(s)) not in seen for s in range(inhouse.n_sequences)])
    return {
        "RITTER": lambda predict: macro_f1(ritter, predict(ritter)),
        "INHOUSE, new": lambda predict: macro_f1(inhouse, predict(inhouse), new),
    }


def part(seed: int) -> CrowdCorpus:
    """Return the annotated sentences of random documents, about PART_SIZE of them."""
    corpus = entities.whole()
    document, _ = corpus.metadata["document"].codes()
    order = np.random.default_rng(seed).permutation(int(document.max()) + 1)
    kept = order[: int(np.searchsorted(np.cumsum(np.bincount(document)[order]), PART_SIZE)) + 1]
    return corpus.select(sequences=np.flatnonzero(np.isin(document, kept) & corpus.annotated_sequences))


Scorers = dict[str, Callable[[Any], float]]
Scores = dict[str, dict[str, float]]


def measure(unit: Any) -> Scores:
    """Return the scores of a crowd, or of a part of the entities: setting → objective → score."""
    found: Scores = {}

    def add(name: str, trainer: Trainer, scorers: Scorers) -> None:
        for objective in OBJECTIVES | PERCEPTRONS:
            weights = trainer.weights(objective)
            for text, score in scorers.items():
                value = score(lambda corpus, weights=weights: trainer.predict(weights, corpus))
                found.setdefault(f"{text}, {name}", {})[objective] = value

    if unit == WHY:
        return why()
    if isinstance(unit, int):
        testb = entities.testb()
        add(
            "default",
            Trainer(part(unit), *ENTITY_FEATURES),
            {"eng.testb": lambda predict: span_f1(testb, predict(testb))},
        )
        return found
    for name, (templates, l2) in FEATURES.items():
        add(name, Trainer(crowd(*unit), templates, l2), tweet_scorers())
    return found


def crowd(groups: str, seed: int) -> CrowdCorpus:
    """Simulate one of the crowds over T-DGA."""
    return simulate.crowd(tweets.tdga(), gold="gold1", groups=groups, seed=seed, **tweets.CROWD_KINDS["table-1"])


def why() -> Scores:
    """Return how two taggers label the text they learned from (the first crowd), with moves between labels and without.

    Per cent of tokens that are right by the crowd's truth, and that get the label which is given most.
    """
    found: Scores = {}
    trainer = Trainer(crowd(*CROWDS[0]), *FEATURES["default"])
    chain = trainer.features
    alone = crf.Features(
        np.arange(chain.n_tokens + 1), chain.slots, chain.bundle_start, chain.bundle_feature, chain.n_features
    )
    for name, features in (("with moves", chain), ("every token alone", alone)):
        trainer.features = features
        for objective in ("likelihood", "agreement-f1"):
            labels = viterbi(features, trainer.weights(objective))
            most = int(np.bincount(labels).argmax())
            found[f"{objective}, {name}"] = {
                "right": 100 * float((labels == trainer.targets).mean()),
                trainer.corpus.labels[most]: 100 * float((labels == most).mean()),
            }
    return found


def measure_all(kept: Path | None, n: int) -> list[Scores]:
    """Measure the first units and why agreement-f1 fails, except what is kept already; the latter comes last."""
    done: dict[str, Scores] = json.loads(kept.read_text("utf-8")) if kept is not None and kept.is_file() else {}
    units = (*UNITS[:n], WHY)
    for unit in units:
        if str(unit) not in done:
            done[str(unit)] = measure(unit)
            print(unit, file=sys.stderr, flush=True)
            if kept is not None:
                kept.write_text(json.dumps(done), "utf-8")
    return [done[str(unit)] for unit in units]


def together(results: list[Scores]) -> dict[str, dict[str, list[float]]]:
    """Return the scores by setting and objective, one for each unit."""
    found: dict[str, dict[str, list[float]]] = {}
    for result in results:
        for setting, scores in result.items():
            for objective, value in scores.items():
                found.setdefault(setting, {}).setdefault(objective, []).append(value)
    return dict(sorted(found.items()))


def interval(values: list[float], base: list[float]) -> tuple[float, float, float]:
    """Return the mean paired difference and its 95 % interval."""
    difference = np.subtract(values, base)
    half = float(stats.t.ppf(0.975, len(base) - 1) * difference.std(ddof=1) / np.sqrt(len(base)))
    return float(difference.mean()), float(difference.mean()) - half, float(difference.mean()) + half


def table(found: dict[str, dict[str, list[float]]], names: Iterable[str]) -> list[str]:
    """Return the scores of the first row, the differences of others to it, and how often they are clearly not 0."""
    base, *_ = names
    heads = [f"{setting} ({len(scores[base])} crowds)" for setting, scores in found.items()]
    lines = [f"| objective | {' | '.join(heads)} | clearly better / worse |", "|---" * (len(found) + 2) + "|"]
    for name in names:
        cells, better, worse = [], 0, 0
        for scores in found.values():
            if name == base:
                cells.append(f"{np.mean(scores[name]):.2f}")
                continue
            mean, low, high = interval(scores[name], scores[base])
            better, worse = better + (low > 0), worse + (high < 0)
            cells.append(f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−"))
        last = "–" if name == base else f"{better} / {worse} of {len(found)}"
        lines.append(f"| {name} | {' | '.join(cells)} | {last} |")
    return lines


def shares(found: Scores) -> list[str]:
    """Return what `why` found as a table."""
    lines = ["| trained by | right | the label it gives most |", "|---|---|---|"]
    for name, values in found.items():
        right, (label, share) = values["right"], next(item for item in values.items() if item[0] != "right")
        lines.append(f"| {name} | {right:.1f} % | {label}, {share:.1f} % |")
    return lines


def main() -> None:
    """Measure, print, and write into a page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="a page with marks to put the table between")
    parser.add_argument("--kept", type=Path, help="a file that keeps what is finished")
    parser.add_argument(
        "--units", type=int, default=len(UNITS), help="how many crowds to run, in the order of the list"
    )
    args = parser.parse_args()
    *measured, reason = measure_all(args.kept, args.units)
    found = together(measured)
    lines = [*table(found, OBJECTIVES), "", *table(found, PERCEPTRONS), "", *shares(reason)]
    print("\n".join(lines))
    if args.write is not None:
        page = args.write.read_text("utf-8")
        before, rest = page.split(BEGIN)
        text = "\n".join(lines)
        args.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
