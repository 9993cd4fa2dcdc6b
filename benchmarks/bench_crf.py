"""The CRF engine beside python-crfsuite on CoNLL-2003 and tweets: same features, same penalty, one run.

    python benchmarks/bench_crf.py [--quick] [--json FILE] [--objectives] [--lexicons]

Times are CPU seconds (time.process_time) unless they say wall. Every comparison alternates between the two
within one process, so that a noisy machine troubles both; memory is measured in a process of its own each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("LASCA_DATA") or ROOT.parent / "shared" / "data")
Sentences = list[list[str]]


def read_conll(path: Path) -> tuple[Sentences, Sentences]:
    """Read the first and last column; IOB1 becomes IOB2."""
    tokens: Sentences = [[]]
    labels: Sentences = [[]]
    before = "O"
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = line.split()
        if not cells or cells[0] == "-DOCSTART-":
            if tokens[-1]:
                tokens.append([])
                labels.append([])
            before = "O"
            continue
        label = cells[-1]
        starts = label.startswith("I-") and (before == "O" or before[2:] != label[2:])
        tokens[-1].append(cells[0])
        labels[-1].append(f"B-{label[2:]}" if starts else label)
        before = label
    return [t for t in tokens if t], [row for row in labels if row]


@dataclass
class Task:
    """Sentences with labels, and the same as flat arrays."""

    tokens: Sentences
    labels: Sentences
    names: list[str]

    def flat(self) -> tuple[list[str], Any, Any]:
        code = {name: i for i, name in enumerate(self.names)}
        offsets = np.concatenate([[0], np.cumsum([len(s) for s in self.tokens])])
        codes = np.array([code.get(name, -1) for row in self.labels for name in row], dtype=np.int16)
        return [t for s in self.tokens for t in s], offsets, codes


def attributes(extractor: Any, features: Any) -> list[list[list[str]]]:
    """Write out the features as the lists of strings that python-crfsuite wants."""
    names = extractor.feature_names()
    start, ids = features.bundle_start, features.bundle_feature
    bundles = [[names[f] for f in ids[a:b]] for a, b in pairwise(start)]
    rows = [[name for b in row for name in bundles[b]] for row in features.slots.tolist()]
    return [rows[a:b] for a, b in pairwise(features.offsets)]


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


class ClockedTrainer(pycrfsuite.Trainer):  # type: ignore[misc]
    """Notes CPU and wall time whenever an iteration is over."""

    clocks: list[tuple[float, float]]

    def message(self, text: str) -> None:
        if text.startswith("***** Iteration #"):
            self.clocks.append((time.process_time(), time.perf_counter()))


def trainer_for(attrs: list[Any], labels: Sentences, algorithm: str = "lbfgs", **params: Any) -> Any:
    trainer = ClockedTrainer(verbose=False)
    trainer.clocks = []
    for x, y in zip(attrs, labels):
        trainer.append(x, y)
    trainer.select(algorithm)
    trainer.set_params(params)
    return trainer


def f1(gold: Sentences, found: Sentences) -> float:
    from lasca import evaluate

    return 100 * evaluate.spans(gold, found, mode="lenient").f1


def accuracy(gold: Sentences, found: Sentences) -> float:
    pairs = [(a, b) for x, y in zip(gold, found) for a, b in zip(x, y)]
    return 100 * sum(a == b for a, b in pairs) / len(pairs)


class Rows:
    """The table: what, ours, theirs, ratio, what is wanted."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, what: str, ours: float, theirs: float | None, wanted: str, met: bool) -> None:
        ratio = None if not theirs or not ours else ours / theirs if "per CPU s" in what else theirs / ours
        self.rows.append(
            {"what": what, "lasca": ours, "crfsuite": theirs, "ratio": ratio, "wanted": wanted, "met": bool(met)}
        )
        theirs_text = "-" if theirs is None else f"{theirs:,.3f}"
        ratio_text = "-" if ratio is None else f"{ratio:.2f}"
        print(
            f"{what:58s} {ours:12,.3f} {theirs_text:>12s} {ratio_text:>7s}  {wanted} {'ok' if met else 'MISSED'}",
            flush=True,
        )


def bench_evaluation(rows: Rows, train: Task, attrs: list[Any], features: Any, rounds: int) -> None:
    """One evaluation against one of CRFsuite's iterations; on a busy machine the best wall times tell more."""
    from lasca import crf
    from lasca.crf.features import seen_with

    codes, n_labels = train.flat()[2], len(train.names)
    space = crf.ParameterSpace.of_seen(*seen_with(features, codes[:, None] == np.arange(n_labels)))
    x, g = np.zeros(space.size), np.zeros(space.size)
    functions = {
        (name, threads): crf.Objective(features, codes, space, objective=name, l2=1.0, n_threads=threads)
        for name in ("likelihood", "cost-sensitive")
        for threads in (1, 2)
    }
    for function in functions.values():
        function(x, g)
    trainer = trainer_for(attrs, train.labels, c1=0.0, c2=1.0, max_iterations=12)
    ours: dict[Any, list[tuple[float, float]]] = {key: [] for key in functions}
    theirs: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            trainer.clocks.clear()
            trainer.train(f"{folder}/m")
            theirs += [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(trainer.clocks)][1:]
            for key, function in functions.items():
                for _ in range(10):
                    ours[key].append(timed(lambda function=function: function(x, g))[1:])
    per = statistics.median(c for c, _ in theirs)
    cpu = {key: statistics.median(c for c, _ in values) for key, values in ours.items()}
    per_best = min(w for _, w in theirs)
    best = {key: min(w for _, w in values) for key, values in ours.items()}
    one, two, costly = ("likelihood", 1), ("likelihood", 2), ("cost-sensitive", 1)
    rows.add("evaluation of likelihood, 1 thread, CPU s (median)", cpu[one], per, "2.5x", per / cpu[one] >= 2.5)
    rows.add("evaluation of likelihood, 1 thread, wall s (best)", best[one], per_best, "-", True)
    rows.add("evaluation of likelihood, 2 threads, wall s (best)", best[two], per_best, "4x", per_best / best[two] >= 4)
    rows.add("cost-sensitive / likelihood, CPU", cpu[costly] / cpu[one], None, "<= 2", cpu[costly] <= 2 * cpu[one])
    bench_vector_work(rows, space.size, cpu[one])


def bench_vector_work(rows: Rows, size: int, evaluation: float) -> None:
    """The two-loop recursion, remembering a pair and stepping, at full memory."""
    from lasca.crf.optimise import _History
    from lasca.kernels import vectors

    rng = np.random.default_rng(0)
    history = _History(size)
    x, g, d = (np.zeros(size) for _ in range(3))

    def iteration() -> None:
        new_x, new_g = x + rng.random(size), g + rng.random(size)
        seconds.append(
            timed(
                lambda: (
                    history.add(x, new_x, g, new_g),
                    history.direction(g, d),
                    vectors.step_to(x, 1.0, d, new_x),
                )
            )[1]
        )

    seconds: list[float] = []
    for _ in range(20):
        iteration()
    work = statistics.median(seconds[8:])
    rows.add("vector work of an L-BFGS iteration / evaluation", work / evaluation, None, "<= 1", work <= evaluation)


def bench_training(
    rows: Rows, train: Task, test: Task, attrs: list[Any], test_attrs: list[Any], extractor: Any
) -> None:
    from lasca import crf

    tokens, offsets, codes = train.flat()
    test_tokens, test_offsets, _ = test.flat()

    def theirs(algorithm: str, **params: Any) -> tuple[float, float, float]:
        trainer = trainer_for(attrs, train.labels, algorithm, **params)
        with tempfile.TemporaryDirectory() as folder:
            _, cpu, _ = timed(lambda: trainer.train(f"{folder}/m"))
            tagger = pycrfsuite.Tagger()
            tagger.open(f"{folder}/m")
            found, tag_cpu, _ = timed(lambda: [tagger.tag(x) for x in test_attrs])
        return cpu, f1(test.labels, found), len(test_tokens) / tag_cpu

    def score(weights: Any) -> float:
        best = crf.viterbi(extractor.transform(test_tokens, test_offsets), weights)
        names = [train.names[c] for c in best]
        return f1(test.labels, [names[a:b] for a, b in pairwise(test_offsets)])

    features = extractor.fit(tokens, offsets)

    def converged(c2: float) -> float:
        cpu, quality, speed = theirs("lbfgs", c1=0.0, c2=c2)
        weights, own_cpu, _ = timed(lambda: crf.fit(features, codes, len(train.names), l2=c2, states="observed"))
        own = score(weights)
        rows.add(f"training to convergence, c2 = {c2}, CPU s", own_cpu, cpu, "3x", cpu >= 3 * own_cpu)
        rows.add(f"  span F1 on eng.testb, c2 = {c2}", own, quality, ">= theirs - 0.2", own >= quality - 0.2)
        return speed

    speed = converged(1.0)
    cpu, quality, _ = theirs("ap", max_iterations=10)
    weights, own_cpu, _ = timed(
        lambda: crf.perceptron(extractor.fit(tokens, offsets), codes, len(train.names), epochs=5)
    )
    own = score(weights)
    rows.add("averaged perceptron, features included, CPU s", own_cpu, cpu, "< 4 s", own_cpu < 4)
    rows.add("  span F1 on eng.testb", own, quality, ">= 80.5", own >= 80.5)
    bench_tagging(rows, train, test, speed)
    converged(0.1)


def bench_tagging(rows: Rows, train: Task, test: Task, theirs: float) -> None:
    """From lists of strings to lists of labels; CRFsuite is given ready attributes."""
    from lasca.corpus import CrowdCorpus
    from lasca.tagger import CrfTagger

    corpus = CrowdCorpus.from_sequences(train.tokens, {}, golds={"gold": train.labels})
    tagger = CrfTagger(templates="basic", optimiser="perceptron", max_iter=3, n_threads=1).fit(corpus, "gold")
    tagger.predict(test.tokens[:5])
    n = sum(len(s) for s in test.tokens)
    seconds = statistics.median(timed(lambda: tagger.predict(test.tokens))[1] for _ in range(5))
    speed = n / seconds
    rows.add("tagging, tokens per CPU s (higher is better)", speed, theirs, ">= 300,000", speed >= 300_000)
    seconds = timed(lambda: CrfTagger(n_threads=2).fit(corpus, "gold"))
    found, tag, _ = timed(lambda: seconds[0].predict(test.tokens))
    rows.add("default tagger (set ner): training CPU s", seconds[1], None, "-", True)
    rows.add("  span F1 on eng.testb", f1(test.labels, found), None, ">= 84", f1(test.labels, found) >= 84)
    rows.add("  tagging, tokens per CPU s", n / tag, None, "-", True)


def bench_tweets(rows: Rows) -> None:
    """Trained on T-DGA's first gold: accuracy on INHOUSE and RITTER-TEST, same features, c2 = 1; and the set pos."""
    from lasca import datasets
    from lasca.crf import Extractor
    from lasca.tagger import CrfTagger

    train = datasets.load("tdga")
    tokens = [train.sequence(s) for s in range(train.n_sequences)]
    labels = [["X" if n is None else n for n in row] for row in train.label_names(train.golds["gold1"])]
    extractor = Extractor(templates="basic")
    features = extractor.fit([t for s in tokens for t in s], train.offsets)
    trainer = trainer_for(attributes(extractor, features), labels, c1=0.0, c2=1.0)
    same = CrfTagger(templates="basic", l2=1.0, tol=1e-5, n_threads=1).fit(train, "gold1")
    default = CrfTagger(templates="pos").fit(train, "gold1")
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/m")
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/m")
        for name in ("inhouse", "ritter-test"):
            test = datasets.load(name)
            words = [test.sequence(s) for s in range(test.n_sequences)]
            gold = [["" if n is None else n for n in row] for row in test.label_names(next(iter(test.golds.values())))]
            ids = attributes(extractor, extractor.transform([t for s in words for t in s], test.offsets))
            theirs = accuracy(gold, [tagger.tag(x) for x in ids])
            own, best = accuracy(gold, same.predict(words)), accuracy(gold, default.predict(words))
            rows.add(f"accuracy on {name}, same features", own, theirs, ">= theirs", own >= theirs)
            rows.add(f"accuracy on {name}, set pos", best, theirs, ">= theirs", best >= theirs)


def bench_objectives() -> None:
    """The three objectives on tweets (costs from the two golds) and on 2,000 sentences of CoNLL-2003 (every cost 1)."""
    from lasca import CrfTagger, LabelConfusion, datasets
    from lasca.corpus import CrowdCorpus

    train = datasets.load("tdga")
    confusion = LabelConfusion.from_golds(train, "gold1", "gold2")
    tests = {name: datasets.load(name) for name in ("inhouse", "ritter-test")}
    tokens, labels = read_conll(DATA / "conll2003" / "eng.train")
    entities = CrowdCorpus.from_sequences(tokens[:2000], {}, golds={"gold": labels[:2000]})
    testb = read_conll(DATA / "conll2003" / "eng.testb")
    for objective in ("likelihood", "cost-sensitive", "softmax-margin"):
        tagger = CrfTagger(objective=objective, confusion=confusion).fit(train, "gold1")
        for name, test in tests.items():
            words = [test.sequence(s) for s in range(test.n_sequences)]
            gold = [["" if n is None else n for n in row] for row in test.label_names(next(iter(test.golds.values())))]
            print(
                f"{objective:15s} T-DGA -> {name:12s} accuracy {accuracy(gold, tagger.predict(words)):.2f}", flush=True
            )
        tagger = CrfTagger(objective=objective, templates="basic", l2=1.0).fit(entities, "gold")
        print(
            f"{objective:15s} CoNLL -> eng.testb    span F1  {f1(testb[1], tagger.predict(testb[0])):.2f}", flush=True
        )


def bench_lexicons(train: Task, test: Task) -> None:
    """What lexicon features cost beside the set `ner` alone: one evaluation of the likelihood, and tagging, in CPU."""
    from lasca import crf
    from lasca.corpus import CrowdCorpus
    from lasca.crf.features import seen_with
    from lasca.tagger import CrfTagger

    corpus = CrowdCorpus.from_sequences(train.tokens, {}, golds={"gold": train.labels})
    tokens, offsets, codes = train.flat()
    taggers, objectives, vectors = [], [], []
    for language in (None, "en"):
        tagger = CrfTagger(lexicons=language, optimiser="perceptron", max_iter=2, n_threads=1).fit(corpus, "gold")
        features = tagger._fitted().extractor.transform(tokens, offsets)
        space = crf.ParameterSpace.of_seen(*seen_with(features, codes[:, None] == np.arange(len(train.names))))
        taggers.append(tagger)
        objectives.append(crf.Objective(features, codes, space, l2=1.0))
        vectors.append((np.zeros(space.size), np.zeros(space.size)))
    n = sum(len(s) for s in test.tokens)
    evaluation: list[list[float]] = [[], []]
    tagging: list[list[float]] = [[], []]
    for _ in range(15):
        for which in (0, 1):
            evaluation[which].append(timed(lambda w=which: objectives[w](*vectors[w]))[1])
            tagging[which].append(timed(lambda w=which: taggers[w].predict(test.tokens))[1])
    for what, times in (("one evaluation", evaluation), ("tagging eng.testb", tagging)):
        without, with_lists = (statistics.median(t) for t in times)
        print(f"{what}: {without:.4f} CPU s without lexicons, {with_lists:.4f} with: {with_lists / without:.2f} x")
    print(f"tagging with lexicons: {n / statistics.median(tagging[1]):,.0f} tokens per CPU s")


def peak_memory() -> float:
    """Return this process's own peak in MB; ru_maxrss would count the parent it was forked from."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_of(which: str) -> float:
    """Return the peak memory in MB of a process that trains for thirty iterations."""
    command = [sys.executable, __file__, "--memory", which]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def train_and_measure(which: str) -> None:
    tokens, labels = read_conll(DATA / "conll2003" / "eng.train")
    if which == "lasca":
        from lasca import crf

        task = Task(tokens, labels, sorted({n for row in labels for n in row}))
        words, offsets, codes = task.flat()
        features = crf.Extractor(templates="basic").fit(words, offsets)
        crf.fit(features, codes, len(task.names), l2=1.0, states="observed", max_iter=30)
    else:
        sys.path.insert(0, str(ROOT / "tests"))
        import naive

        affixes = [f"{kind}{n}[0]" for kind in ("prefix", "suffix") for n in (1, 2, 3, 4)]
        templates = ["bias", *(f"word[{o}]" for o in range(-2, 3)), "lower[0]", *affixes]
        templates += [f"shape[{o}]" for o in (-1, 0, 1)]
        trainer = pycrfsuite.Trainer(verbose=False)
        for sentence, row in zip(tokens, labels):
            trainer.append([naive.crf_attributes(templates, sentence, i) for i in range(len(sentence))], row)
        trainer.select("lbfgs")
        trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 30})
        with tempfile.TemporaryDirectory() as folder:
            trainer.train(f"{folder}/m")
    print(peak_memory())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, no training to convergence")
    parser.add_argument("--json", type=Path, help="write the table here, too")
    parser.add_argument("--objectives", action="store_true", help="compare the objectives instead")
    parser.add_argument("--lexicons", action="store_true", help="what the extra `lexicon` costs, instead")
    parser.add_argument("--memory", choices=("lasca", "crfsuite"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (DATA / "conll2003" / "eng.train").exists():
        print(f"no CoNLL-2003 under {DATA}: set LASCA_DATA to a folder with conll2003/eng.train and eng.testb")
        return
    if options.memory:
        train_and_measure(options.memory)
        return
    os.environ.setdefault("LASCA_DATA", str(DATA))
    if options.objectives:
        bench_objectives()
        return
    from lasca import crf

    train_tokens, train_labels = read_conll(DATA / "conll2003" / "eng.train")
    names = sorted({n for row in train_labels for n in row})
    train = Task(train_tokens, train_labels, names)
    test = Task(*read_conll(DATA / "conll2003" / "eng.testb"), names)
    if options.lexicons:
        bench_lexicons(train, test)
        return
    extractor = crf.Extractor(templates="basic")
    features = extractor.fit(*train.flat()[:2])
    attrs = attributes(extractor, features)
    test_attrs = attributes(extractor, extractor.transform(*test.flat()[:2]))
    rows = Rows()
    print(f"{'':58s} {'lasca':>12s} {'crfsuite':>12s} {'ratio':>7s}  wanted")
    bench_evaluation(rows, train, attrs, features, rounds=1 if options.quick else 3)
    ours, theirs = memory_of("lasca"), memory_of("crfsuite")
    rows.add("peak memory, MB", ours, theirs, "<= 2x theirs", ours <= 2 * theirs)
    bench_tweets(rows)
    if not options.quick:
        bench_training(rows, train, test, attrs, test_attrs, extractor)
    if options.json:
        options.json.write_text(json.dumps(rows.rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
