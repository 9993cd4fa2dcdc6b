"""The truth of a sharded corpus in a folder: labels in Parquet files, a part for each block, written where it is.

```
labels/part-00000.parquet  sequence, position, token, label (null where nothing is said), probability, proba
annotators.csv             who is worth what
aggregate.json             model, parameters, source, warnings, diagnostics
truth/                     what was learned of annotators and labels (`Truth.load`, `history=`), nothing of tokens
```

Beside the folder, while it is in the making, lies what a killed run is taken up from: the last state of the loop.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from lasca.ambiguity.shards import Found, two_truths_in_shards
from lasca.ambiguity.write import table
from lasca.confusion import LabelConfusion, expected_confusion
from lasca.corpus.shards import ShardedCorpus, is_sharded
from lasca.corpus.store import write_part
from lasca.corpus.votes import Block
from lasca.engine.cluster import engine_of
from lasca.errors import ModelError, StoreError
from lasca.files import check_output, real_path, whole_folder, write_lines
from lasca.formats.write_tables import people_table
from lasca.pipeline.checkpoints import Checkpoints
from lasca.pipeline.folder import versions, write_annotators, write_summary
from lasca.records import plain
from lasca.tagger import CrfTagger
from lasca.tagger.shards import fit_in_shards, tag_in_shards
from lasca.truth import Truth, TruthModel, supporting
from lasca.truth.base import Progress, Workplace
from lasca.truth.finish import Finish, Part
from lasca.truth.parts import TruthOnDisk

__all__ = ["aggregate_shards", "ambiguity_in_shards", "confusion_in_shards", "tag_shards", "train_in_shards"]


def aggregate_shards(
    corpus: ShardedCorpus,
    output: str | Path,
    model: TruthModel,
    *,
    engine: Any = None,
    every: int = 10,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Truth:
    """Infer the truth of a sharded corpus into a folder, whole or not at all; return what was learned of annotators.

    `engine` is None (threads), "dask" (a cluster of processes on this machine), the address of a scheduler, or a Dask
    client. `every` so many steps there is a checkpoint; `resume=True` goes on from the last one of a run that was
    stopped.
    """
    if "shards" not in model.supports:
        raise ModelError(
            f"{model.name} needs the whole corpus in memory",
            got=str(corpus.folder),
            hint=f"Take one of {', '.join(supporting('shards'))}, or read it whole: ShardedCorpus.whole()",
        )
    check_output(output, corpus.folder, overwrite=overwrite)
    key = {
        "versions": versions(),
        "model": model.name,
        "parameters": {name: plain(value) for name, value in model.get_params().items()},
        "input": {"source": str(corpus.folder), "sha256": corpus.key},
    }
    steps = Checkpoints(real_path(output), key, resume=resume)
    try:
        with engine_of(engine) as opened:
            truth = _fitted(corpus, model, steps, opened, every, progress)
        steps.finish(lambda folder: _write(corpus, truth, steps.folder, folder), overwrite=overwrite)
        return truth
    finally:
        if not any((steps.folder / "scratch").glob("checkpoint*")):
            steps.steps.clear()  # nothing to go on from: the work folder goes
        steps.close()


def _fitted(
    corpus: ShardedCorpus, model: TruthModel, steps: Checkpoints, engine: Any, every: int, progress: Progress | None
) -> Truth:
    """Fit a copy of the model; its parts and its checkpoint lie in the work folder."""
    parts, scratch = steps.folder / "parts", steps.folder / "scratch"
    shutil.rmtree(parts, ignore_errors=True)
    for folder in (parts, scratch):
        folder.mkdir(exist_ok=True)
    steps.steps["loop"] = {"seconds": 0.0, "warnings": []}  # there may be a checkpoint: the work folder is to stay
    own = copy.copy(model)
    own.engine = engine or model.engine
    own.place = Workplace(scratch, lambda finish: WritePart(finish, parts, corpus.labels), every)
    return own.fit(corpus, progress=progress)


def _write(corpus: ShardedCorpus, truth: Truth, work: Path, folder: Path) -> None:
    _tidy(work / "parts")
    (work / "parts").rename(folder / "labels")
    write_annotators(truth, folder)
    source = corpus.load_report.to_dict() | {"source": str(corpus.folder), "sha256": corpus.key}
    write_summary(folder, truth, source, diagnostics={name: plain(value) for name, value in truth.diagnostics.items()})
    truth.save(folder / "truth")


def ambiguity_in_shards(
    truth: str | Path,
    output: str | Path,
    *,
    fraction: float | None = 0.10,
    threshold: float = 0.5,
    max_iter: int = 200,
    tol: float = 1e-6,
    sample: int = 200_000,
    engine: Any = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Found:
    """Find the ambiguous tokens (two-truths) of a sharded corpus whose truth `aggregate_shards` wrote.

    `output` gets `ambiguous/` and `scores/` in parts, the first of all for people (top.csv, top.jsonl), and the records
    `ambiguity` (without single tokens) and `confusion`; whole or not at all.
    """
    check_output(output, truth, overwrite=overwrite)
    opened = TruthOnDisk.open(truth)
    with whole_folder(output, overwrite=overwrite) as folder, engine_of(engine) as own:
        found = two_truths_in_shards(
            opened, folder, fraction=fraction, threshold=threshold, max_iter=max_iter, tol=tol, sample=sample,
            engine=own, progress=progress,
        )  # fmt: skip
        _tidy(folder)
        people_table(table(found.top), folder / "top.csv")
        write_lines(folder / "top.jsonl", found.top)
        found.ambiguity.save(folder / "ambiguity")
        expected_confusion(found.ambiguity, found.n_ranked).save(folder / "confusion")
    return found


def confusion_in_shards(
    truth: str | Path, beside: str | Path, *, engine: Any = None, progress: Progress | None = None
) -> LabelConfusion:
    """Return which labels are confused in a sharded corpus; ambiguous tokens are found for it, and left nowhere."""
    with _scratch(real_path(beside)) as folder:
        found = ambiguity_in_shards(truth, folder / "ambiguity", engine=engine, progress=progress)
    return expected_confusion(found.ambiguity, found.n_ranked)


def train_in_shards(
    source: str | Path,
    output: str | Path,
    tagger: Any,
    *,
    gold: str | None = None,
    engine: Any = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> CrfTagger:
    """Train a `CrfTagger` on the truth that `aggregate_shards` wrote, or on a gold of a sharded corpus, and save it.

    The features of the blocks lie in a hidden folder beside `output` until the tagger is there.
    """
    check_output(output, source, overwrite=overwrite)
    opened = ShardedCorpus.open(source) if is_sharded(source) else TruthOnDisk.open(source)
    place = real_path(output)
    with _scratch(place) as folder, engine_of(engine) as own:
        fitted = fit_in_shards(tagger, opened, gold=gold, engine=own, folder=folder, progress=progress)
    fitted.save(output, overwrite=overwrite)
    return fitted


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """Give a hidden folder beside a target that every worker can see; it goes at the end."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", where=str(target)) from error


def tag_shards(
    tagger: str | Path,
    corpus: str | Path,
    output: str | Path,
    *,
    proba: bool = False,
    engine: Any = None,
    overwrite: bool = False,
) -> int:
    """Tag a sharded corpus by a saved tagger: `output`/labels, in parts, whole or not at all; return the sequences."""
    check_output(output, corpus, overwrite=overwrite)
    opened = ShardedCorpus.open(corpus)
    with whole_folder(output, overwrite=overwrite) as folder, engine_of(engine) as own:
        n = tag_in_shards(tagger, opened, folder / "labels", proba=proba, engine=own)
        _tidy(folder)
    return n


def _tidy(folder: Path) -> None:
    """Remove what workers left behind that were killed while they wrote."""
    for left in folder.rglob(".*"):
        left.unlink()


@dataclass(frozen=True)
class WritePart:
    """Finishes a block and writes it as a part, whole or not at all; the same bytes wherever and however often."""

    finish: Finish
    folder: Path
    labels: tuple[str, ...]

    def __call__(self, number: int, block: Block, proba: Any, labels: Any, statistics: tuple[Any, ...]) -> Part:
        """Write a block; nothing of its tokens is returned."""
        part = self.finish(number, block, proba, labels, statistics)
        assert part.proba is not None
        assert part.labels is not None
        assert part.voted is not None
        chosen = part.proba[np.arange(len(part.labels)), part.labels]
        names = pa.array(self.labels, pa.string())
        table = pa.table(
            block.place.columns(block.votes.words)
            | {
                "label": pa.DictionaryArray.from_arrays(pa.array(part.labels, mask=~part.voted), names),
                "probability": chosen,
                "proba": pa.FixedSizeListArray.from_arrays(pa.array(part.proba.ravel()), len(self.labels)),
            }
        ).replace_schema_metadata({"labels": "\n".join(self.labels)})
        write_part(table, self.folder, number)
        return part._replace(proba=None, labels=None, voted=None)
