"""The tagger: a corpus and a truth (or a gold) in, a fitted linear-chain CRF out.

`objective` says what is learned (see `lasca.crf.objective`): "likelihood", "cost-sensitive" (paper, eq. 18: taking one
label for another costs 1 − how confusable they are), "softmax-margin", or "agreement" (Plank et al. 2014; with the
perceptron it is their algorithm itself). Costs come from `confusion`, a LabelConfusion or a matrix over the corpus's
labels (`lasca.confusion.disagreement` makes those of "agreement"); without it every mistake costs 1.

Deviations from the paper: costs are clipped to [0.001, 1] so that a confusion of 1 cannot make the objective vanish;
an L2 penalty is always part of the cost-sensitive objective, which is unbounded without it.

A run of the optimiser tells its progress in words, holds sequences out, and stops early by them (`_Watch`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np

from lasca.arrays import Array
from lasca.crf.decode import Constraint, marginals, n_best, viterbi
from lasca.crf.extract import Extractor
from lasca.crf.features import Features, Weights
from lasca.crf.fields import Lexicons, read_clusters, read_gazetteer, ready_lexicons
from lasca.crf.objective import OBJECTIVES
from lasca.crf.optimise import Iteration
from lasca.crf.templates import templates_for, with_lists
from lasca.crf.training import Callback, LabelledText, TextBlock, fit, fit_blocks, perceptron
from lasca.engine import Engine, Threads, available_threads
from lasca.errors import ModelError, ParameterError
from lasca.estimator import Progress, check_number, choice, flag, generator, number, other, seeds, threads, whole
from lasca.files import whole_folder
from lasca.tagger.base import Examples, Tagger
from lasca.tagger.prepare import aligned_costs, blocks_of, scheme_constraint
from lasca.tagger.store import Fitted, write_card

__all__ = ["CrfTagger"]

_APART = 5  # iterations between two looks at the held-out sequences


class _Watch:
    """After each iteration: tell the progress, score held-out sequences (`aside`), say when to stop."""

    def __init__(
        self,
        features: Features,
        targets: Array,
        aside: Array,
        constraint: Constraint | None,
        patience: int,
        progress: Progress | None,
    ) -> None:
        self.features, self.aside, self.constraint = features, aside, constraint
        self.gold = targets if targets.ndim == 1 else targets.argmax(axis=1)
        self.patience, self.progress = patience, progress
        self.best: Array | None = None
        self.best_score, self.score, self.checks_since = -1.0, float("nan"), 0

    def __call__(self, now: Iteration, weights: Weights) -> bool:
        stop = len(self.aside) > 0 and now.iteration % _APART == 0 and self._check(weights)
        if self.progress is not None:
            held = "" if np.isnan(self.score) else f", held-out accuracy {self.score:.4f}"
            told(self.progress, held)(now, weights)
        return stop

    def _check(self, weights: Weights) -> bool:
        labels = viterbi(self.features, weights, sequences=self.aside, constraint=self.constraint)
        seen = (labels >= 0) & (self.gold >= 0)
        self.score = float((labels[seen] == self.gold[seen]).mean()) if seen.any() else 0.0
        if self.score > self.best_score:
            self.best_score, self.best, self.checks_since = self.score, weights.vector.copy(), 0
        else:
            self.checks_since += 1
        return self.checks_since >= self.patience


def told(progress: Progress, more: str = "") -> Callback:
    """Return what tells the progress after each iteration."""

    def tell(now: Iteration, weights: Weights) -> bool:
        left = "" if np.isnan(now.left) else f", about {now.left:.0f} s left"
        by_time = 0.0 if np.isnan(now.left) else now.elapsed / max(now.elapsed + now.left, 1e-9)
        share = max(by_time, now.iteration / now.max_iter)
        progress(share, f"iteration {now.iteration}, objective {now.objective:.1f}{more}{left}")
        return False

    return tell


def _split(n: int, share: float, seed: int | np.random.Generator) -> tuple[Array, Array]:
    aside = round(n * share)
    if aside == 0:
        return np.arange(n), np.arange(0)
    order = generator(seed).permutation(n)
    return np.sort(order[aside:]), np.sort(order[:aside])


class CrfTagger(Tagger):
    """A linear-chain CRF tagger."""

    kind = "crf"
    renamed = MappingProxyType({"threads": "n_threads", "tolerance": "tol"})
    _model: Fitted | None = None

    objective: str = choice("what is learned", (*OBJECTIVES, "agreement-f1"), default="likelihood")
    confusion: Any = other(
        "how confusable labels are, for the objectives with a cost", "a LabelConfusion or a matrix", default=None
    )
    templates: str = other(
        'which features there are; "auto" is "ner" for labels of a tag scheme, else "pos"',
        "a ready set, or templates as text",
        default="auto",
    )
    soft: bool = flag("learn from the truth's probabilities instead of its labels, token by token", default=False)
    paths: int = whole(
        "learn from up to so many label sequences of each sequence, weighted by their probability (see "
        "`lasca.tagger.prepare`); 0 for the one that was inferred",
        default=0,
        low=0,
        high=50,
    )
    certain: float = number("labels less probable than this are taken as unknown", default=0.0, low=0, high=1)
    l2: float = number("penalty l2 · ‖θ‖²", default=0.5, low=0)
    l1: float = number("penalty l1 · ‖θ‖₁", default=0.0, low=0)
    min_count: int = whole("leave out features that occur less often", default=1, low=1)
    hash_bits: int | None = whole(
        "features are hashed into 2**hash_bits places", default=None, low=4, high=26, none="a dictionary"
    )
    states: str = choice(
        'labels a feature has weights for; "observed": those it was seen with', ("observed", "all"), default="observed"
    )
    optimiser: str = choice(
        "the perceptron is averaged, fast, without penalties, without probabilities worth the name",
        ("lbfgs", "perceptron"),
        default="lbfgs",
    )
    max_iter: int | None = whole(
        "iterations of L-BFGS, or passes of the perceptron", default=None, low=1, none="500, or 10 passes"
    )
    tol: float = number("stop when the objective falls by less (relative) over ten iterations", default=1e-4, low=0)
    held_out: float = number(
        "share of sequences kept aside to stop early; the best weights on them are kept", default=0.0, low=0, high=0.5
    )
    patience: int = whole("checks without improvement before stopping, five iterations apart", default=5, low=1)
    constrained: bool = flag("predict only label sequences the tag scheme allows", default=True)
    lexicons: str | None = other(
        "use the ready word clusters, places and names of a language, which the extra `lexicon` installs; never used "
        "unless asked, so that a result does not depend on what happens to be installed; `tagger.lexicon_sources` and "
        "the saved tagger say what was used",
        '"en", "de", "es" or None',
        default=None,
    )
    clusters: Mapping[str, str | Path | Mapping[str, str]] | None = other(
        "word clusters by name; a ready set of templates is extended by them, templates of one's own must name them",
        "files (word, cluster; or Brown's paths) or mappings",
        default=None,
    )
    gazetteers: Mapping[str, str | Path | Iterable[str]] | None = other(
        "phrases by name, as for clusters", "files (a phrase a line) or phrases", default=None
    )
    n_threads: int | None = threads(default=None)
    seed: int | np.random.Generator = seeds(default=0)

    @property
    def trace(self) -> tuple[float, ...]:
        """The objective after each iteration (wrong tokens per pass, for the perceptron)."""
        return tuple(self._fitted().weights.trace)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self._fitted().weights.space.n_features)

    @property
    def lexicon_sources(self) -> tuple[str, ...]:
        """Which ready lexicons the features look into, with their sizes and the versions of their packages."""
        return tuple(self._fitted().extractor.lexicons.sources)

    @property
    def known_words(self) -> Collection[str]:
        """The words it has seen in training, where its templates look at words and nothing is hashed."""
        dictionary = self._fitted().extractor.dictionary
        return [] if dictionary is None else dictionary.values.get("word", [])

    def top_features(self, label: str, n: int = 20) -> list[tuple[str, float]]:
        """Return the features with the largest weights for a label; needs a dictionary (no hashing)."""
        model = self._fitted()
        if label not in model.labels:
            raise ParameterError("label", label, "one of " + ", ".join(model.labels))
        names = model.extractor.feature_names()
        column = np.flatnonzero(model.active == model.labels.index(label))
        if not names or not len(column):
            return []
        weights = model.weights.state()[:, column[0]]
        return [(names[i], float(weights[i])) for i in np.argsort(-weights, kind="stable")[:n].tolist()]

    def _learn(self, examples: Examples, progress: Progress | None) -> None:
        if self.optimiser == "perceptron" and examples.weights is not None:
            raise ParameterError("optimiser", self.optimiser, "'lbfgs' for sequences with weights")
        labels, active, targets = examples.labels, examples.active, examples.targets
        names = [labels[a] for a in active]
        constraint = scheme_constraint(names, targets, examples.offsets) if self.constrained else None
        if examples.borders is not None and examples.weights is None and self.in_blocks:
            blocks = [
                LabelledText(
                    examples.tokens[offsets[0] : offsets[-1]],
                    offsets - offsets[0],
                    targets[offsets[0] : offsets[-1]],
                    k,
                )
                for k, (a, b) in enumerate(pairwise(examples.borders))
                for offsets in (examples.offsets[a : b + 1],)
            ]
            self._learn_blocks(blocks, labels, active, constraint, Threads(self.n_threads), None, progress)
            return
        extractor = self._extractor(labels)
        features = extractor.fit(examples.tokens, examples.offsets)
        learned, weights = targets, examples.weights
        if examples.paths is not None:
            many = examples.paths
            features, learned = many.repeat(features), many.labels
            weights = many.weights if weights is None else many.weights * weights[many.owner]
        if self.optimiser == "perceptron":
            gamma = None if self.objective == "likelihood" else aligned_costs(self.confusion, labels, active)
            found = self._perceptron(features, learned, len(active), gamma, progress)
        else:
            train, aside = _split(features.n_sequences, self.held_out, self.seed)
            watch = _Watch(features, learned, aside, constraint, self.patience, progress)
            found = fit(
                features, learned, len(active), states=self.states, sequences=train, sequence_weights=weights,
                callback=watch, n_threads=available_threads(self.n_threads), **self._settings(labels, active),
            )  # fmt: skip
            if watch.best is not None:
                found = Weights(found.space, watch.best, found.trace, found.converged)
        self._model = Fitted(labels, active, extractor, found, constraint)

    def _perceptron(
        self, features: Features, targets: Array, n_labels: int, gamma: Array | None, progress: Progress | None
    ) -> Weights:
        if targets.ndim != 1:
            raise ModelError("the perceptron needs one label per token")
        epochs = 10 if self.max_iter is None else self.max_iter

        def told(epoch: int, errors: int) -> bool:
            if progress is not None:
                progress((epoch + 1) / epochs, f"pass {epoch + 1}, {errors:,} wrong tokens")
            return False

        return perceptron(
            features, targets, n_labels, epochs=epochs, states=self.states, gamma=gamma, seed=self.seed, callback=told
        )

    @property
    def in_blocks(self) -> bool:
        """Whether it learns from gradients that add up over blocks."""
        return self.optimiser == "lbfgs" and not self.paths and not self.held_out

    def _learn_blocks(
        self,
        blocks: Sequence[TextBlock],
        labels: tuple[str, ...],
        active: Array,
        constraint: Constraint | None,
        engine: Engine,
        folder: Path | None,
        progress: Progress | None,
    ) -> None:
        """Learn from blocks, whose targets are over the active labels; `folder` is for their features."""
        extractor = self._extractor(labels)
        with nullcontext(folder) if folder is not None else TemporaryDirectory(prefix="lasca-") as place:
            found = fit_blocks(
                blocks, extractor, len(active), engine=engine, folder=Path(place), states=self.states,
                callback=None if progress is None else told(progress), **self._settings(labels, active),
            )  # fmt: skip
        self._model = Fitted(labels, active, extractor, found, constraint)

    def _extractor(self, labels: tuple[str, ...]) -> Extractor:
        text = templates_for(labels) if self.templates == "auto" else self.templates
        lists = self._lexicons()
        return Extractor(
            templates=with_lists(text, lists.clusters, lists.gazetteers), lexicons=lists, min_count=self.min_count,
            hash_bits=self.hash_bits,
        )  # fmt: skip

    def _settings(self, labels: tuple[str, ...], active: Array) -> dict[str, Any]:
        """Return the settings of L-BFGS."""
        return {
            "objective": self.objective, "costs": aligned_costs(self.confusion, labels, active), "l2": self.l2,
            "l1": self.l1, "max_iter": 500 if self.max_iter is None else self.max_iter, "tol": self.tol,
        }  # fmt: skip

    def _best(self, tokens: list[str], offsets: Array) -> Array:
        model = self._fitted()
        features, n_threads = model.extractor.transform(tokens, offsets), available_threads(self.n_threads)
        return viterbi(features, model.weights, constraint=model.constraint, n_threads=n_threads)

    def _marginals(self, tokens: list[str], offsets: Array) -> Array:
        model = self._fitted()
        features = model.extractor.transform(tokens, offsets)
        return marginals(features, model.weights, n_threads=available_threads(self.n_threads))

    def predict_n_best(self, sentences: Sequence[Sequence[str]], n: int = 5) -> list[list[tuple[list[str], float]]]:
        """Return up to n best label sequences of each sentence, best first, each with its probability."""
        model = self._fitted()
        names = [model.labels[a] for a in model.active]
        out: list[list[tuple[list[str], float]]] = []
        for tokens, offsets in blocks_of(sentences):
            features = model.extractor.transform(tokens, offsets)
            for paths in n_best(features, model.weights, n, constraint=model.constraint):
                out.append([([names[c] for c in path.tolist()], float(np.exp(value))) for path, value in paths])
        return out

    def save(self, path: str | Path, *, overwrite: bool = False, card: str | None = None) -> None:
        """Write the fitted tagger into a folder: weights as safetensors, the rest as JSON; `card` as model-card.md."""
        model = self._fitted()
        with whole_folder(path, overwrite=overwrite) as folder:
            write_card(folder, card)
            model.save(folder, self._plain(elsewhere=("confusion", "clusters", "gazetteers")))

    @classmethod
    def load(cls, path: str | Path) -> CrfTagger:
        """Read a tagger that `save` wrote. Nothing in the folder can run code."""
        model, parameters = Fitted.load(path)
        named = {cls.renamed.get(k, k): v for k, v in parameters.items()}
        tagger = cls(**{k: v for k, v in named.items() if k in cls._parameter_names()})
        tagger._model = model
        return tagger

    def _check(self) -> None:
        super()._check()
        if self.objective == "cost-sensitive":
            check_number("l2", self.l2, low=0.0, open_low=True)
        if self.paths and (self.held_out or self.optimiser == "perceptron"):
            raise ParameterError("paths", self.paths, "0 with held_out or the perceptron")
        if self.objective == "agreement-f1" and self.optimiser != "perceptron":
            raise ParameterError(
                "optimiser", self.optimiser, "'perceptron' for agreement-f1: see docs/cost-sensitive.md"
            )
        possible = self.objective == "likelihood" or self.objective.startswith("agreement")
        if self.optimiser == "perceptron" and (self.soft or not possible or self.held_out):
            raise ParameterError("optimiser", self.optimiser, "'lbfgs' for soft targets, costs and held-out sequences")

    def _lexicons(self) -> Lexicons:
        own = Lexicons(
            {name: read_clusters(source) for name, source in (self.clusters or {}).items()},
            {name: read_gazetteer(source) for name, source in (self.gazetteers or {}).items()},
        )
        return own if self.lexicons is None else ready_lexicons(self.lexicons).joined(own)
