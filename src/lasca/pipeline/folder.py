"""Folders that people and the next program read: a truth with its corpus, and OUT, all that a run leaves."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lasca import __version__, formats
from lasca.ambiguity.write import write_all
from lasca.corpus import CrowdCorpus
from lasca.errors import StoreError
from lasca.files import whole_folder, write_json
from lasca.formats.write_tables import guarded
from lasca.review.queue import make_queue, write_queue
from lasca.truth import Truth

if TYPE_CHECKING:
    from lasca.pipeline.way import Run

__all__ = ["load_truth", "save_truth", "write_csv", "write_out"]

LABEL_FILES = (("conll", "labels.conll"), ("jsonl", "labels.jsonl"), ("parquet", "labels.parquet"))


def save_truth(corpus: CrowdCorpus, truth: Truth, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a truth and its corpus into one folder, for people (labels, annotators) and for the next step (records)."""
    with whole_folder(path, overwrite=overwrite) as folder:
        write_labels(corpus, truth, folder)
        write_json(
            folder / "aggregate.json",
            {
                "lasca": __version__,
                "model": truth.model,
                "params": {name: repr(value) for name, value in truth.params.items()},
                "source": corpus.load_report.to_dict(),
                "warnings": list(truth.warnings),
            },
        )
        corpus.save(folder / "corpus")
        truth.save(folder / "truth")


def write_labels(corpus: CrowdCorpus, truth: Truth, folder: Path) -> None:
    """Write what people want first: the labels in three formats, the annotators, and their clusters."""
    for name, file in LABEL_FILES:
        formats.WRITERS[name](corpus, folder / file, labels=truth.codes, proba=truth.proba)
    write_csv(folder / "annotators.csv", list(truth.annotators.column_names), truth.annotators.to_pylist())
    if truth.clusters is not None:
        write_json(folder / "clusters.json", _clusters(corpus, truth))


def load_truth(path: str | Path) -> tuple[CrowdCorpus, Truth]:
    """Read back corpus and truth from a folder that `save_truth` or a run wrote."""
    folder = Path(path)
    if not (folder / "truth").is_dir():
        raise StoreError(
            "there is no inferred truth in this folder",
            where=str(folder),
            hint="Make one with: lasca aggregate DATA -o FOLDER",
        )
    return CrowdCorpus.load(folder / "corpus"), Truth.load(folder / "truth")


def _clusters(corpus: CrowdCorpus, truth: Truth) -> dict[str, Any]:
    clusters = truth.clusters
    assert clusters is not None
    return {
        "labels": list(corpus.labels),
        "reliable": clusters.reliable,
        "clusters": [
            {
                "annotators": [a for a, c in zip(corpus.annotators, clusters.assignment) if c == k],
                "shared_confusion": clusters.shared[k].astype(float).round(6).tolist(),
            }
            for k in range(clusters.n_clusters)
        ],
    }


def write_csv(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV that a spreadsheet can open without running anything."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([guarded(name) for name in columns])
        writer.writerows([guarded(row[name]) for name in columns] for row in rows)


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
