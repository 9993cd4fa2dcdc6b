"""OUT: what a run leaves for people and for the next program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasca.ambiguity.write import write_all
from lasca.review.queue import make_queue, write_queue
from lasca.runs.truth_folder import write_csv, write_json, write_labels

if TYPE_CHECKING:
    from lasca.pipeline import Run

__all__ = ["write_out"]


def write_out(run: Run, folder: Path, record: Callable[[list[str]], dict[str, Any]]) -> None:
    """Write everything into an empty folder; `record` makes run.json when the last warnings are known."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        write_labels(run.corpus, run.truth, folder)
        write_all(run.corpus, run.truth, run.ambiguity, folder / "ambiguous")
        write_queue(run.corpus, make_queue(run.corpus, run.truth, run.ambiguity), folder)
    said = [str(w.message).replace(str(folder) + "/", "").replace(str(folder), "OUT") for w in caught]
    names = run.confusion.labels
    rows = [dict(zip(("label", *names), (name, *row))) for name, row in zip(names, run.confusion.matrix.tolist())]
    write_csv(folder / "confusion.csv", ["label", *names], rows)
    if run.models:
        write_json(folder / "models.json", list(run.models))
    run.corpus.save(folder / "corpus")
    run.truth.save(folder / "truth")
    run.ambiguity.save(folder / "ambiguity")
    run.confusion.save(folder / "confusion")
    run.tagger.save(folder / "tagger")
    made = record(list(dict.fromkeys(said)))
    write_json(folder / "run.json", made)
    (folder / "report.html").write_text(run.page(record=made), encoding="utf-8")
