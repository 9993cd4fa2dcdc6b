"""The layout of Hugging Face data sets out: Parquet with `id`, `tokens`, `ner_tags` (numbers, with their names).

With `labels` a row per sequence: the truth, `soft_labels` (probabilities in the order of the names), `ambiguous` and
`candidates` where they are given. Without, a row per sequence and annotator, -100 for a missing label, and a row
without annotator for the gold called "gold"; other golds have no place there and are left out with a warning.

A path that ends in .parquet is one file; any other path becomes a folder with README.md (the names in its front matter)
and data/train-00000-of-00001.parquet, which `datasets.load_dataset` and the Hub take as it is.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning
from lasca.files import whole_file, whole_folder
from lasca.formats.outcome import Outcome, everybody

__all__ = ["write"]

MISSING = -100


def write(corpus: CrowdCorpus, made: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a data set for Hugging Face, a file or a folder by the ending of the path."""
    extra = {name for row in made.names or () for name in row if name is not None} - set(corpus.labels)
    names = [*corpus.labels, *sorted(extra)]
    code = {name: i for i, name in enumerate(names)}
    columns: dict[str, Any]
    if made.names is None:
        columns = _annotations(corpus, code)
    else:
        spans = [slice(int(a), int(b)) for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:])]
        columns = {"id": corpus.sequence_ids.arrow, "tokens": [corpus.sequence(s) for s in range(corpus.n_sequences)]}
        columns["ner_tags"] = [[MISSING if n is None else code[n] for n in row] for row in made.names]
        if made.proba is not None:
            pad = [0.0] * len(extra)
            columns["soft_labels"] = [[[*line, *pad] for line in made.proba[at].tolist()] for at in spans]
        if made.ambiguous is not None:
            columns["ambiguous"] = [made.ambiguous[at].tolist() for at in spans]
        if made.candidates is not None:
            columns["candidates"] = [
                [[name for name, _ in made.candidates.get(i, [])] for i in range(at.start, at.stop)] for at in spans
            ]
    _save(pa.table({name: _array(name, values) for name, values in columns.items()}), names, path, overwrite)


def _annotations(corpus: CrowdCorpus, code: dict[str, int]) -> dict[str, Any]:
    said = everybody(corpus)
    left_out = [name for role, name, _ in said if role == "gold" and name != "gold"]
    models = [name for role, name, _ in said if role == "model"]
    if left_out or models:
        told = [f"left out: {', '.join(left_out)}"] if left_out else []
        told += [f"written as annotators: models {', '.join(models)}"] if models else []
        warnings.warn(LascaWarning(f"Hugging Face rows know one gold and no models; {'; '.join(told)}"), stacklevel=4)
    columns: dict[str, list[Any]] = {"id": [], "tokens": [], "ner_tags": [], "annotator": []}
    for s in range(corpus.n_sequences):
        tokens, id = corpus.sequence(s), corpus.sequence_ids[s]
        rows = [
            (None if role == "gold" else name, labels[s])
            for role, name, labels in said
            if name not in left_out and any(label is not None for label in labels[s])
        ]
        for name, labels in rows or [(None, [None] * len(tokens))]:
            columns["id"].append(id)
            columns["tokens"].append(tokens)
            columns["ner_tags"].append([MISSING if label is None else code[label] for label in labels])
            columns["annotator"].append(name)
    return columns


_TYPES = {
    "id": pa.string(),
    "tokens": pa.list_(pa.string()),
    "ner_tags": pa.list_(pa.int64()),
    "annotator": pa.string(),
    "soft_labels": pa.list_(pa.list_(pa.float32())),
    "ambiguous": pa.list_(pa.bool_()),
    "candidates": pa.list_(pa.list_(pa.string())),
}


def _array(name: str, values: Any) -> Any:
    return values.cast(_TYPES[name]) if isinstance(values, pa.Array) else pa.array(values, _TYPES[name])


def _features(table: Any, names: list[str]) -> dict[str, Any]:
    """Return the features as the `datasets` package writes them into a schema."""

    def value(kind: str) -> dict[str, Any]:
        return {"dtype": kind, "_type": "Value"}

    def sequence(feature: dict[str, Any]) -> dict[str, Any]:
        return {"feature": feature, "_type": "Sequence"}

    known = {
        "id": value("string"),
        "annotator": value("string"),
        "tokens": sequence(value("string")),
        "ner_tags": sequence({"names": names, "_type": "ClassLabel"}),
        "soft_labels": sequence(sequence(value("float32"))),
        "ambiguous": sequence(value("bool")),
        "candidates": sequence(sequence(value("string"))),
    }
    return {name: known[name] for name in table.column_names}


def _save(table: Any, names: list[str], path: str | Path, overwrite: bool) -> None:
    features = _features(table, names)
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    if Path(path).suffix.lower() == ".parquet":
        with whole_file(path) as scratch:
            pq.write_table(table, scratch, compression="zstd")
        return
    with whole_folder(path, overwrite=overwrite) as folder:
        (folder / "data").mkdir()
        pq.write_table(table, folder / "data" / "train-00000-of-00001.parquet", compression="zstd")
        (folder / "README.md").write_text(_card(features, names), encoding="utf-8")


def _card(features: dict[str, Any], names: list[str]) -> str:
    """Return a card whose front matter tells the Hub the features and the names of the labels."""
    kinds = {"id": "string", "annotator": "string"}
    inner = {
        "tokens": "    sequence: string",
        "soft_labels": "    sequence:\n      sequence: float32",
        "ambiguous": "    sequence: bool",
        "candidates": "    sequence:\n      sequence: string",
    }
    lines = [
        "---",
        "configs:",
        "- config_name: default",
        "  data_files: data/*.parquet",
        "dataset_info:",
        "  features:",
    ]
    for name in features:
        lines.append(f"  - name: {name}")
        if name == "ner_tags":
            lines += ["    sequence:", "      class_label:", "        names:"]
            lines += [f"          '{i}': {json.dumps(label, ensure_ascii=False)}" for i, label in enumerate(names)]
        else:
            lines.append(f"    dtype: {kinds[name]}" if name in kinds else inner[name])
    return "\n".join([*lines, "---", "", "Written by LASCA.", ""])
