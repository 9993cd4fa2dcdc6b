"""What a run leaves behind: run.json – what was done, with what, on what, so that it can be done again – and the
folders that people and the next program read: a truth with its corpus, and OUT, all of it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import platform
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca import __version__
from lasca.ambiguity.write import write_all
from lasca.comparison import departure_from_majority
from lasca.corpus import CrowdCorpus
from lasca.errors import StoreError
from lasca.files import file_hash, whole_folder, write_json, written
from lasca.formats.write_tables import guarded
from lasca.pipeline.checkpoints import Steps
from lasca.records import plain
from lasca.review.finish import write_labels
from lasca.review.project import load_truth
from lasca.review.queue import make_queue, write_queue
from lasca.truth import Truth

if TYPE_CHECKING:
    from lasca.pipeline.way import Run

__all__ = [
    "command", "corpus_hash", "load_truth", "make_record", "path_hash", "save_truth", "source_of", "versions",
    "with_warnings", "write_annotators", "write_out", "write_summary",
]  # fmt: skip

VERSION = 1
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pyarrow", "safetensors", "jinja2")


def versions() -> dict[str, str]:
    """Return the versions of LASCA, Python and the packages that have a say in the result."""
    found = {"lasca": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | {"machine": f"{platform.system()} {platform.machine()}"}


def path_hash(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and hashes of all files below a folder."""
    try:
        if not path.is_dir():
            return file_hash(path)
        total = hashlib.sha256()
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            total.update(f"{file_hash(file)} {file.relative_to(path).as_posix()}\n".encode())
        return total.hexdigest()
    except OSError as error:
        raise StoreError(f"cannot read: {error.strerror or error}", where=str(path)) from error


def corpus_hash(corpus: CrowdCorpus) -> str:
    """Return the SHA-256 of what a corpus says: texts, labels, annotators, annotations, golds, and what is known."""
    total = hashlib.sha256()

    def add(name: str, value: Any) -> None:
        total.update(f"\n{name}:".encode())
        if isinstance(value, np.ndarray):
            total.update(np.ascontiguousarray(value).astype("<i8").tobytes())
            return
        for text in value:
            data = str(text).encode("utf-8", "surrogatepass")
            total.update(f"{len(data)}:".encode() + data)

    add("tokens", corpus.tokens)
    add("ids", corpus.sequence_ids)
    arrays = ("offsets", "token_start", "annotation_annotator", "annotation_label")
    for name in (*arrays, "labels", "annotators", "roles"):
        add(name, getattr(corpus, name))
    for name, gold in sorted(corpus.golds.items()):
        add(f"gold {name}", gold)
    _add_evidence(corpus, add)
    return total.hexdigest()


def _add_evidence(corpus: CrowdCorpus, add: Callable[[str, Any], None]) -> None:
    """Add what only some corpora have, so that the hash of the others stays what it was."""
    if "rule" in corpus.kinds:
        add("kinds", corpus.kinds)
    if any(family is not None for family in corpus.families):
        add("families", corpus.families)
    if any(votes != (kind != "model") for votes, kind in zip(corpus.votes, corpus.kinds)):
        add("votes", corpus.votes)
    if corpus.soft is not None:
        add("soft tokens", corpus.soft.token)
        add("soft annotators", corpus.soft.annotator)
        add("soft votes", np.ascontiguousarray(corpus.soft.proba).view(np.int32))
    if corpus.known is not None:
        add("known tokens", corpus.known.token)
        add("known labels", corpus.known.allowed)


def source_of(data: Any, pseudonyms: bool) -> dict[str, str]:
    """Say what is read, before it is read: a name, and a hash where there are bytes to hash."""
    if isinstance(data, CrowdCorpus):
        shown = "" if pseudonyms else data.load_report.source
        return {"source": shown, "sha256": corpus_hash(data)}
    if isinstance(data, list | tuple):
        parts = [source_of(path, pseudonyms) for path in data]
        sums = hashlib.sha256("\n".join(part.get("sha256", "") for part in parts).encode()).hexdigest()
        names = [part["source"] for part in parts if part["source"]]
        return {"source": ", ".join(names), "files": "\n".join(names), "sha256": sums}
    path, name = Path(data), written(data)
    found = {"source": "" if pseudonyms and path.exists() else name}
    return found | {"sha256": path_hash(path)} if name != "-" and path.exists() else found


def make_record(done: Mapping[str, Any], facts: dict[str, Any], steps: Steps) -> dict[str, Any]:
    """Return what run.json holds. Only `timings` differs between two runs of the same."""
    corpus, truth = done["corpus"], done["truth"]
    said = [*truth.warnings, *departure_from_majority(corpus, truth), *done["ambiguity"].warnings, *steps.warnings]
    facts["input"] = facts["input"] | {"corpus_sha256": corpus_hash(corpus), "format": corpus.load_report.format}
    return {
        "lasca": "run",
        "version": VERSION,
        **facts,
        "load_report": corpus.load_report.to_dict(),
        "warnings": list(dict.fromkeys(said)),
        "timings": steps.timings,
    }


def with_warnings(record: Mapping[str, Any], said: list[str]) -> dict[str, Any]:
    """Add warnings to a record."""
    return {**record, "warnings": list(dict.fromkeys([*record.get("warnings", ()), *said]))}


def command(key: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return the command line that does the same again; `usual` are the model's parameters when nothing is said."""
    asked = key["parameters"]
    files = key["input"].get("files", "").split("\n") if key["input"].get("files") else [key["input"]["source"]]
    words = ["lasca", "run", *(file or "DATA" for file in files), "-o", "OUT"]
    words += [] if asked["preset"] == "default" else ["--preset", asked["preset"]]
    words += ["--model", asked["model"]]
    words += ["--seed", str(key["seeds"]["model"]), "--method", asked["method"], "--fraction", str(asked["fraction"])]
    words += ["--objective", asked["objective"]]
    own = {
        k: v for k, v in asked["model_parameters"].items() if k in usual and k != "seed" and plain(v) != plain(usual[k])
    }
    words += [word for k, v in own.items() for word in ("--param", f"{k}={_shown(v)}")]
    words += [word for k, v in asked["tagger_parameters"].items() for word in ("--tagger", f"{k}={_shown(v)}")]
    words += [] if asked["format"] == "auto" else ["--format", asked["format"]]
    words += [word for k, v in asked["reader"].items() for word in ("--reader", f"{k}={_shown(v)}")]
    words += [] if asked["gold"] is None else ["--gold", asked["gold"]]
    words += [f"--{name}" for name in ("compare", "pseudonyms") if asked[name]]
    return shlex.join(words)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def save_truth(corpus: CrowdCorpus, truth: Truth, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a truth and its corpus into one folder, for people (labels, annotators) and for the next step (records)."""
    with whole_folder(path, overwrite=overwrite) as folder:
        write_results(corpus, truth, folder)
        write_summary(folder, truth, corpus.load_report.to_dict())
        corpus.save(folder / "corpus")
        truth.save(folder / "truth")


def write_summary(folder: Path, truth: Truth, source: Mapping[str, Any], **more: Any) -> None:
    """Write aggregate.json: by which model, with which parameters, and from what a truth was inferred."""
    params = {name: repr(value) for name, value in truth.params.items()}
    said = {"lasca": __version__, "model": truth.model, "params": params, "source": dict(source)}
    write_json(folder / "aggregate.json", said | {"warnings": list(truth.warnings)} | more)


def write_results(corpus: CrowdCorpus, truth: Truth, folder: Path) -> None:
    """Write what people want first: the labels in three formats, the annotators, and their clusters."""
    write_labels(corpus, truth, folder)
    write_annotators(truth, folder)
    if truth.clusters is not None:
        write_json(folder / "clusters.json", _clusters(corpus, truth))


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


def write_annotators(truth: Truth, folder: Path) -> None:
    """Write annotators.csv: who is worth what."""
    rows = (row.values() for row in truth.annotators.to_pylist())
    write_csv(folder / "annotators.csv", truth.annotators.column_names, rows)


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as CSV that a spreadsheet can open without running anything."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows(map(guarded, row) for row in (columns, *rows))


def write_out(run: Run, folder: Path, record: Callable[[list[str]], dict[str, Any]]) -> None:
    """Write everything into an empty folder; `record` makes run.json when the last warnings are known."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        write_results(run.corpus, run.truth, folder)
        write_all(run.corpus, run.truth, run.ambiguity, folder / "ambiguous")
        write_queue(run.corpus, make_queue(run.corpus, run.truth, run.ambiguity), folder)
    said = [str(w.message).replace(str(folder) + "/", "").replace(str(folder), "OUT") for w in caught]
    names = run.confusion.labels
    rows = ((name, *row) for name, row in zip(names, run.confusion.matrix.tolist()))
    write_csv(folder / "confusion.csv", ("label", *names), rows)
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
