"""The whole way: read, truth, ambiguity, confusion, tagger, report. This module alone knows the order of the steps."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from lasca import report
from lasca.ambiguity import Ambiguity, find_ambiguity
from lasca.comparison import compare as compare_models
from lasca.comparison import seeded
from lasca.confusion import DISAGREEMENTS, LabelConfusion, disagreement, label_confusion
from lasca.corpus import CrowdCorpus, need_corpus
from lasca.corpus.reshape import pseudonymise
from lasca.corpus.shards import ShardedCorpus
from lasca.defaults import Preset, preset_named
from lasca.engine.cluster import engine_of
from lasca.errors import ModelError, ParameterError, StoreError
from lasca.estimator import Progress
from lasca.files import check_output, check_sums, real_path, sums_of, whole_file, whole_folder, write_json, written
from lasca.pipeline.checkpoints import Checkpoints, Steps, is_finished
from lasca.pipeline.folder import command, load_truth, make_record, source_of, versions, with_warnings, write_out
from lasca.pipeline.sharded import aggregate_shards, ambiguity_in_shards, train_in_shards
from lasca.pipeline.source import one_corpus, paths, read
from lasca.records import plain
from lasca.tagger import Tagger, load_tagger, tagger_class
from lasca.tagger.shards import learner_of
from lasca.truth import Truth, TruthModel

__all__ = ["Run", "report_on_truth", "run", "run_shards"]

SHARES = {
    "read": 0.04, "truth": 0.5, "models": 0.2, "ambiguity": 0.08, "confusion": 0.01, "tagger": 0.35, "report": 0.05,
}  # fmt: skip
"""About how long the steps take, for the progress display."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What the whole way gave."""

    corpus: CrowdCorpus
    truth: Truth
    ambiguity: Ambiguity
    confusion: LabelConfusion
    tagger: Tagger
    record: Mapping[str, Any] = field(default_factory=dict)
    """What run.json holds: versions, parameters, seeds, input, warnings, timings."""
    models: tuple[Mapping[str, Any], ...] = ()
    """Models side by side, where that was asked for."""

    def __repr__(self) -> str:
        return f"Run({self.corpus!r}, {self.truth!r}, {self.ambiguity!r})"

    def _repr_html_(self) -> str:
        return f"{self.corpus._repr_html_()}\n{self.truth._repr_html_()}\n<p>{escape(repr(self.ambiguity))}</p>"

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write everything into a folder, whole or not at all; `lasca run` writes the same."""
        with whole_folder(path, overwrite=overwrite) as folder:
            write_out(self, folder, lambda said: dict(with_warnings(self.record, said)))

    def report(self, path: str | Path, **options: Any) -> None:
        """Write the report: one HTML page that needs nothing else. The options are those of `page`."""
        text = self.page(**options)
        with whole_file(path) as file:
            file.write_text(text, encoding="utf-8")

    def page(
        self,
        *,
        title: str | None = None,
        gold: str | None = None,
        models: Sequence[Mapping[str, Any]] | None = None,
        record: Mapping[str, Any] | None = None,
        crowdtruth: bool = False,
    ) -> str:
        """Return the report as text. `models` are comparisons as `lasca compare --json` prints them.

        `crowdtruth` adds CrowdTruth's worker quality to the table of annotators.
        """
        known = self.record if record is None else record
        data = report.build(
            self.corpus, self.truth, self.ambiguity, self.confusion, record=known, crowdtruth=crowdtruth,
            title=title or known.get("title"), gold=gold or known.get("parameters", {}).get("gold"),
            models=self.models if models is None else models, tagger_trace=getattr(self.tagger, "trace", ()),
        )  # fmt: skip
        return report.render(data)

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a folder that `save` or `lasca run` wrote."""
        folder = Path(path)
        if not (folder / "run.json").is_file():
            raise StoreError(
                "there is no run in this folder", where=str(folder), hint="Make one with: lasca run DATA -o FOLDER"
            )
        try:
            models = [name for name in ("models.json",) if name in sums_of(folder)]
            check_sums(folder, "run.json", *models)
            record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            compared = json.loads((folder / "models.json").read_text(encoding="utf-8")) if models else ()
        except (OSError, ValueError) as error:
            raise StoreError("the saved run is damaged", where=str(folder), got=str(error)) from error
        return cls(
            corpus=CrowdCorpus.load(folder / "corpus"),
            truth=Truth.load(folder / "truth"),
            ambiguity=Ambiguity.load(folder / "ambiguity"),
            confusion=LabelConfusion.load(folder / "confusion"),
            tagger=load_tagger(folder / "tagger"),
            record=record,
            models=tuple(compared),
        )


def run(
    data: CrowdCorpus | str | Path | Sequence[str | Path],
    *,
    output: str | Path | None = None,
    preset: str = "default",
    model: str | TruthModel | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    method: str | None = None,
    fraction: float | None = None,
    objective: str | None = None,
    tagger: Mapping[str, Any] | None = None,
    gold: str | None = None,
    compare: bool = False,
    pseudonyms: bool = False,
    title: str | None = None,
    format: str = "auto",
    reader: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    truth: Truth | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Run:
    """Go the whole way: read → truth → ambiguity → confusion → tagger → report.

    `data` is a corpus, a path, or the name of a known data set ("demo" for the built-in one). With `output`, every step
    leaves a checkpoint beside that folder (`resume=True` takes them up) and the folder appears whole at the end.
    Without it everything stays in memory until `Run.save` or `Run.report`. `model` and `params` choose the truth model,
    `method` and `fraction` what counts as ambiguous, `objective` and `tagger` (parameters of `CrfTagger`; `kind` names
    another tagger) how the tagger learns; what is not said is as `preset` has it: "default", "la-sca" (the paper's own
    chain) or "la-sca-literal". `compare=True` runs all truth models side by side as well; `pseudonyms=True` calls the
    annotators A1, A2, … everywhere. `truth` is one that was inferred already (of a corpus, by this model): the way goes
    on from there; `facts` are further entries of run.json.
    """
    if not isinstance(data, str | Path | list | tuple):
        need_corpus(data, "lasca.run")
    way = preset_named(preset)
    estimator = _estimator(model, params, seed, way)
    parameters = {
        "preset": preset,
        "model": estimator.name, "model_parameters": {k: plain(v) for k, v in estimator.get_params().items()},
        "method": way.method if method is None else method, "ambiguity_parameters": dict(way.ambiguity),
        "fraction": way.fraction if fraction is None else fraction,
        "objective": way.objective if objective is None else objective,
        "tagger_parameters": {k: plain(v) for k, v in (tagger or {}).items()},
        "gold": gold, "compare": compare,
        "pseudonyms": pseudonyms, "format": format, "reader": {k: plain(v) for k, v in (reader or {}).items()},
    }  # fmt: skip
    tagging = _tagger(way.objective if objective is None else objective, tagger or {}, seed)
    source = source_of(data, pseudonyms)
    title = written(title or Path(source["source"].split(", ")[0]).name) or None
    seeds = {"model": plain(estimator.get_params().get("seed", seed)), "tagger": seed}
    key = {"versions": versions(), "parameters": parameters, "seeds": seeds, "input": source, "title": title}
    steps = Steps()
    if output is not None:
        target = real_path(output)
        if resume and is_finished(target, key):
            Checkpoints.remove(target)
            return Run.load(target)
        check_output(output, *([] if isinstance(data, CrowdCorpus) else paths(data)), overwrite=overwrite)
        steps = Checkpoints(target, key, resume=resume)
    shares = Shares(progress, compare)
    try:
        infer = estimator.fit if truth is None else lambda corpus, progress: truth
        done = _go(data, infer, tagging, steps, parameters, seed, reader or {}, shares)
        record = make_record(done, {**key, "command": command(key, _usual(estimator)), **(facts or {})}, steps)
        result = Run(**done, record=record)
        if isinstance(steps, Checkpoints):
            shares.of("report")(0.0, "")
            steps.finish(
                lambda folder: write_out(result, folder, lambda said: dict(with_warnings(record, said))),
                overwrite=overwrite,
            )
            return Run.load(Path(str(output)))
        return result
    finally:
        if isinstance(steps, Checkpoints):
            steps.close()


def _go(
    data: Any,
    infer: Callable[..., Truth],
    tagging: Tagger,
    steps: Steps,
    asked: Mapping[str, Any],
    seed: int,
    reader: Mapping[str, Any],
    shares: Shares,
) -> dict[str, Any]:
    """Do the steps one after the other; each takes what those before it gave."""

    def get() -> CrowdCorpus:
        corpus = data
        if not isinstance(data, CrowdCorpus):
            corpus = one_corpus(read(data, asked["format"], **reader), data, asked["format"], reader)
        corpus.gold_name(asked["gold"])
        return pseudonymise(corpus) if asked["pseudonyms"] else corpus

    shares.of("read")(0.0, "")
    corpus = steps.step("corpus", get, CrowdCorpus.load)
    truth = steps.step("truth", lambda: infer(corpus, progress=shares.of("truth")), Truth.load)
    models: tuple[Mapping[str, Any], ...] = ()
    if asked["compare"]:
        gold = asked["gold"]
        models = steps.step("models", lambda: _compared(corpus, gold, seed, shares), _load_models, _save_models)
    options = {"method": asked["method"], "fraction": asked["fraction"], **asked["ambiguity_parameters"]}
    ambiguity = steps.step(
        "ambiguity", lambda: find_ambiguity(corpus, truth, progress=shares.of("ambiguity"), **options), Ambiguity.load
    )
    shares.of("confusion")(0.0, "")
    confusion = steps.step("confusion", lambda: label_confusion(corpus, truth, ambiguity), LabelConfusion.load)
    set_to = tagging.get_params()
    if set_to.get("objective", "likelihood") != "likelihood" and set_to.get("confusion") is None:
        kind = DISAGREEMENTS.get(set_to["objective"])
        tagging.set_params(confusion=confusion if kind is None else disagreement(corpus, kind))
    tagger = steps.step("tagger", lambda: tagging.fit(corpus, truth, progress=shares.of("tagger")), load_tagger)
    return {
        "corpus": corpus, "truth": truth, "ambiguity": ambiguity, "confusion": confusion, "tagger": tagger,
        "models": models,
    }  # fmt: skip


def run_shards(
    data: str | Path,
    output: str | Path,
    *,
    preset: str = "default",
    model: str | TruthModel | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    fraction: float | None = None,
    objective: str | None = None,
    tagger: Mapping[str, Any] | None = None,
    engine: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Mapping[str, Any]:
    """Go the way on a corpus in shards, block by block: truth → ambiguity → confusion → tagger; return run.json.

    `output` gets a folder for each step (aggregate, ambiguous, tagger; there is no report) and run.json, whole or not
    at all; finished steps are kept beside it for `resume=True`. The options are those of `run`; the model must support
    "shards", ambiguous tokens are found by two-truths.
    """
    way = preset_named(preset)
    estimator = _estimator(model, params, seed, way)
    learns = way.objective if objective is None else objective
    if way.method != "two-truths":
        raise ParameterError(
            "preset", preset, "default for a corpus in shards: ambiguous tokens are found by two-truths"
        )
    if learns in DISAGREEMENTS:
        raise ParameterError("objective", learns, "likelihood, cost-sensitive or softmax-margin for a corpus in shards")
    tagging = _tagger(learns, tagger or {}, seed)
    learner_of(tagging)
    corpus = ShardedCorpus.open(data)
    check_output(output, data, overwrite=overwrite)
    if corpus.n_labels < 2 or corpus.crowd_votes().lonely == 1:  # now, and not after the truth was inferred
        what = "nothing can be ambiguous: no token has two votes, or there is one label only"
        raise ModelError(what, where=str(data), hint="Run lasca aggregate, and lasca train on what it writes")
    asked: dict[str, Any] = {
        "preset": preset, "model": estimator.name, "objective": learns,
        "model_parameters": {k: plain(v) for k, v in estimator.get_params().items()},
        "fraction": way.fraction if fraction is None else fraction,
        "tagger_parameters": {k: plain(v) for k, v in (tagger or {}).items()},
    }  # fmt: skip
    source = {"source": str(data), "sha256": corpus.key}
    key = {"versions": versions(), "parameters": asked, "seeds": {"model": seed, "tagger": seed}, "input": source}
    steps = Checkpoints(real_path(output), key, resume=resume)
    shares = Shares(progress, compare=False)
    made = steps.folder / "made"

    def step(name: str, work: Callable[[Path], Any]) -> Path:
        def make() -> Path:
            shutil.rmtree(made, ignore_errors=True)
            work(made)
            return made

        return steps.step(name, make, lambda place: place, os.rename)

    try:
        with engine_of(engine) as own:
            options: dict[str, Any] = {"engine": own}
            truth = step(
                "aggregate", lambda at: aggregate_shards(corpus, at, estimator, progress=shares.of("truth"), **options)
            )
            found = step(
                "ambiguous",
                lambda at: ambiguity_in_shards(
                    truth, at, fraction=asked["fraction"], progress=shares.of("ambiguity"), **options
                ),
            )
            if learns != "likelihood" and tagging.get_params()["confusion"] is None:
                tagging.set_params(confusion=LabelConfusion.load(found / "confusion"))
            step("tagger", lambda at: train_in_shards(truth, at, tagging, progress=shares.of("tagger"), **options))
        record = {**key, "timings": steps.timings, "warnings": list(Truth.load(truth / "truth").warnings)}

        def write(folder: Path) -> None:
            for name in ("aggregate", "ambiguous", "tagger"):
                (steps.folder / name).rename(folder / name)
            write_json(folder / "run.json", record)

        steps.finish(write, overwrite=overwrite)
        return record
    finally:
        steps.close()


def report_on_truth(folder: str | Path, path: str | Path, **options: Any) -> None:
    """Write the report of a folder that `save_truth` wrote; what is ambiguous there is found first.

    The options are those of `Run.page`.
    """
    corpus, truth = load_truth(folder)
    ambiguity = find_ambiguity(corpus, truth)
    Run(corpus, truth, ambiguity, label_confusion(corpus, truth, ambiguity), Tagger()).report(path, **options)


def _estimator(model: str | TruthModel | None, params: Mapping[str, Any] | None, seed: int, way: Preset) -> TruthModel:
    """Return the truth model asked for; the preset's parameters are for the preset's model alone."""
    if isinstance(model, TruthModel):  # the caller's stays as it is
        return copy.deepcopy(model).set_params(**(params or {}))
    name = way.model if model is None else model
    own = way.params if name == way.model else {}
    return seeded(name, seed).set_params(**own).set_params(**(params or {}))


def _usual(estimator: TruthModel) -> Mapping[str, Any]:
    """Return the parameters a model has when nothing is said; none where it cannot be made without."""
    try:
        return type(estimator)().get_params()
    except TypeError:
        return {}


def _tagger(objective: str, params: Mapping[str, Any], seed: int) -> Tagger:
    """Return the tagger that is to be trained; an unknown parameter is refused before anything is read.

    `kind` among the parameters names another kind of tagger than the CRF.
    """
    if "objective" in params:
        raise ParameterError("a parameter of the tagger", "objective", "given as the objective of the run")
    own = dict(params)
    made = tagger_class(own.pop("kind", "crf"))()
    known = made.get_params()
    usual = {name: value for name, value in (("objective", objective), ("seed", seed)) if name in known}
    return made.set_params(**usual, **own)


def _compared(corpus: CrowdCorpus, gold: str | None, seed: int, shares: Shares) -> tuple[Mapping[str, Any], ...]:
    by = "folder" if "folder" in corpus.metadata else None
    lines = compare_models(corpus, gold=gold, by=by, seed=seed, progress=shares.of("models"))
    return tuple(line.to_dict() for line in lines)


def _save_models(models: tuple[Mapping[str, Any], ...], path: Path) -> None:
    with whole_folder(path) as folder:
        (folder / "models.json").write_text(json.dumps(models), encoding="utf-8")


def _load_models(path: Path) -> tuple[Mapping[str, Any], ...]:
    check_sums(path, "models.json")
    return tuple(json.loads((path / "models.json").read_text(encoding="utf-8")))


class Shares:
    """Turns the progress of a step into the progress of the whole."""

    def __init__(self, progress: Progress | None, compare: bool) -> None:
        self.progress = progress
        self.highest = 0.0
        self.names = [name for name in SHARES if compare or name != "models"]
        self.total = sum(SHARES[name] for name in self.names)

    def of(self, name: str) -> Progress:
        """Return the progress callback of a step."""
        at = self.names.index(name)
        before = sum(SHARES[n] for n in self.names[:at])
        title = f"{at + 1}/{len(self.names)} {name}"

        def report(share: float, words: str = "") -> None:
            if self.progress is not None:
                done = (before + min(max(share, 0.0), 1.0) * SHARES[name]) / self.total
                self.highest = max(self.highest, done)  # some steps only guess how far they are
                self.progress(self.highest, f"{title}: {words}" if words else title)

        return report
