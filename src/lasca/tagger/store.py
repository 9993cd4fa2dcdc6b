"""Saved taggers: a folder with `tagger.json`, a file of arrays and SHA256SUMS. No code, no pickle.

SHA256SUMS tells whether the files are still what was written. A folder from elsewhere is not trusted all the same: what
is read is checked, and whatever goes wrong is told as damage of that folder. safetensors compares what arrays claim
with the file's length before it reads them; every array of a CRF must have the type and shape the header announces, and
ids must lie where they may.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from lasca.arrays import Array
from lasca.crf.decode import Constraint
from lasca.crf.extract import Dictionary, Extractor
from lasca.crf.features import ParameterSpace, Weights
from lasca.crf.fields import Lexicons
from lasca.crf.templates import Templates
from lasca.errors import LascaError, StoreError
from lasca.files import check_sums

__all__ = [
    "VERSION", "Fitted", "labels_of", "load_extractor", "load_weights", "opened", "rule_of", "rule_rows",
    "save_extractor", "save_weights", "write_card",
]  # fmt: skip

VERSION = 1
MAX_HEADER = 64 << 20
_MOST = {"n_labels": 10_000, "n_features": 2**31 - 2, "n_keys": 10_000}


# --- taggers of all kinds ---------------------------------------------------------------------------------------------


@contextmanager
def opened(path: str | Path, kind: str, *arrays: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Give the folder and the header of a saved tagger; what goes wrong inside is a StoreError about the folder."""
    folder = Path(path)
    try:
        check_sums(folder, "tagger.json", *arrays)
        yield folder, _header(folder / "tagger.json", kind)
    except FileNotFoundError as error:
        raise StoreError(
            "there is no tagger to load", where=str(folder), hint="Make one with: lasca train DATA -o FOLDER"
        ) from error
    except StoreError as error:
        raise StoreError(error.what, where=str(folder), got=error.got, hint=error.hint) from error
    except (
        OSError, LascaError, SafetensorError, KeyError, TypeError, ValueError, OverflowError, RuntimeError, MemoryError,
    ) as error:  # fmt: skip
        raise StoreError("the saved tagger is damaged", where=str(folder), got=str(error)) from error


def _header(file: Path, kind: str) -> dict[str, Any]:
    if file.stat().st_size > MAX_HEADER:
        raise StoreError("tagger.json is too large to be a header", got=file.stat().st_size)
    header = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(header, dict) or header.get("lasca") != "tagger":
        raise StoreError("this is not a tagger that LASCA saved")
    if header.get("kind", "crf") != kind:
        raise StoreError(f"this is not a tagger of the kind {kind!r}", got=header.get("kind", "crf"))
    if header.get("version") != VERSION:
        raise StoreError(
            f"the tagger was saved by another version of LASCA (this one reads version {VERSION})",
            got=header.get("version"), hint="Train it again, or use the version that wrote it",
        )  # fmt: skip
    return header


def labels_of(header: dict[str, Any]) -> tuple[tuple[str, ...], Array]:
    """Return all labels, and which of them the tagger knows."""
    labels = tuple(str(name) for name in header["labels"])
    active = np.array(header["active"], dtype=np.int64).reshape(-1)
    if len(set(active.tolist())) != len(active) or not 0 <= active.min() <= active.max() < len(labels):
        raise StoreError("the labels of the tagger and what it knows differ", got=header["active"])
    return labels, active


def rule_rows(rule: Constraint | None) -> list[Any] | None:
    """Return a constraint as JSON has it."""
    return None if rule is None else [rule.moves.tolist(), rule.first.tolist(), rule.last.tolist()]


def rule_of(header: dict[str, Any], n_labels: int) -> Constraint | None:
    """Read the constraint back."""
    rows = header.get("constraint")
    rule = None if rows is None else Constraint(*(np.array(part, dtype=np.bool_) for part in rows))
    if rule is not None and len(rule.first) != n_labels:
        raise StoreError("the constraint and the labels of the tagger differ", got=len(rule.first))
    return rule


def write_card(folder: Path, card: str | None) -> None:
    """Write the model card, where there is one."""
    if card is not None:
        (folder / "model-card.md").write_text(card, encoding="utf-8")


# --- what CRFs, and networks with their features, keep ----------------------------------------------------------------


def save_extractor(extractor: Extractor, file: Path, more: dict[str, Array]) -> dict[str, Any]:
    """Write the dictionary and the lists of an extractor, and more arrays; return what else must be known, as JSON."""
    dictionary = extractor.dictionary
    if dictionary is None:
        raise StoreError("there is nothing to save before fit", where=str(file))
    arrays = dict(more)
    lists: dict[str, list[str]] = {f"values/{f}": v for f, v in dictionary.values.items()}
    for name, table in extractor.lexicons.clusters.items():
        codes = {value: i for i, value in enumerate(dict.fromkeys(table.values()))}
        lists[f"cluster-words/{name}"], lists[f"clusters/{name}"] = list(table), list(codes)
        arrays[f"cluster-codes/{name}"] = np.array([codes[value] for value in table.values()], dtype=np.int32)
    for name, phrases in extractor.lexicons.gazetteers.items():
        lists[f"gazetteer/{name}"] = sorted(" ".join(p) for p in phrases)
    for name, strings in lists.items():
        encoded = [s.encode("utf-8", "surrogatepass") for s in strings]
        arrays[f"{name}:bytes"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        arrays[f"{name}:lengths"] = np.array([len(e) for e in encoded], dtype=np.int64)
    for number, keys in enumerate(dictionary.keys):
        arrays[f"keys/{number}"] = keys.astype(np.int64)
    save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, file)
    return {
        "n_features": extractor.n_features,
        "templates": extractor.templates.text,
        "min_count": extractor.min_count,
        "hash_bits": extractor.hash_bits,
        "fields": list(dictionary.values),
        "clusters": list(extractor.lexicons.clusters),
        "gazetteers": list(extractor.lexicons.gazetteers),
        "lexicons": list(extractor.lexicons.sources),
        "n_keys": len(dictionary.keys),
    }


def load_extractor(header: dict[str, Any], file: Path) -> Extractor:
    """Read an extractor that `save_extractor` wrote; `header` is what that returned."""
    return _extractor(header, _arrays(header, file, ("n_features", "n_keys")))


def save_weights(extractor: Extractor, weights: Weights, file: Path, more: dict[str, Array]) -> dict[str, Any]:
    """Write an extractor, the weights of its features and more arrays; return what else must be known, as JSON."""
    space = weights.space
    arrays = {
        **more,
        "weights": weights.vector,
        "feature_start": space.feature_start.astype(np.int64),
        "feature_label": space.feature_label.astype(np.int16),
        "move": space.move.astype(np.int64),
    }
    return {
        "n_labels": space.n_labels,
        "trace": [float(v) for v in weights.trace],
        "converged": weights.converged,
        **save_extractor(extractor, file, arrays),
    }


def load_weights(header: dict[str, Any], file: Path) -> tuple[Extractor, Weights]:
    """Read what `save_weights` wrote; `header` is what that returned."""
    return _rebuild(header, _arrays(header, file, tuple(_MOST)))


def _arrays(header: dict[str, Any], file: Path, counts: Sequence[str]) -> dict[str, Array]:
    """Read the arrays of a file, after the counts in the header were checked."""
    for name in counts:
        value, most = header.get(name), _MOST[name]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise StoreError(f"{name} in tagger.json must be a whole number up to {most}", got=value)
    return load_file(file)


def _array(arrays: dict[str, Array], name: str, dtype: Any, shape: tuple[int | None, ...]) -> Array:
    array = arrays[name]
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape))
    if array.dtype != dtype or not fits:
        raise StoreError(f"the array {name!r} has the wrong type or shape", got=f"{array.dtype} {array.shape}")
    return array


def _strings(arrays: dict[str, Array], name: str) -> list[str]:
    data = _array(arrays, f"{name}:bytes", np.uint8, (None,)).tobytes()
    lengths = _array(arrays, f"{name}:lengths", np.int64, (None,))
    if (lengths < 0).any() or int(lengths.sum()) != len(data):
        raise StoreError(f"the list {name!r} does not have the length it claims")
    ends = np.cumsum(lengths).tolist()
    return [data[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends[:-1]], ends)]


def _rebuild(header: dict[str, Any], arrays: dict[str, Array]) -> tuple[Extractor, Weights]:
    n_labels, n_features = header["n_labels"], header["n_features"]
    start = _array(arrays, "feature_start", np.int64, (n_features + 1,))
    label = _array(arrays, "feature_label", np.int16, (None,))
    move = _array(arrays, "move", np.int64, (n_labels, n_labels))
    if start[0] != 0 or start[-1] != len(label) or (np.diff(start) < 0).any():
        raise StoreError("feature_start does not rise from 0 to the number of parameters")
    if len(label) and (label.min() < 0 or label.max() >= n_labels):
        raise StoreError("feature_label holds labels that do not exist")
    places = np.sort(move[move >= 0])
    if not np.array_equal(places, np.arange(len(label), len(label) + len(places))):
        raise StoreError("move does not number the moves one by one")
    vector = _array(arrays, "weights", np.float64, (len(label) + len(places),))
    if not np.isfinite(vector).all():
        raise StoreError("the weights are not all numbers")
    trace = tuple(float(v) for v in header["trace"])
    weights = Weights(
        ParameterSpace(n_features, n_labels, start, label, move), vector, trace, bool(header["converged"])
    )
    return _extractor(header, arrays), weights


def _extractor(header: dict[str, Any], arrays: dict[str, Array]) -> Extractor:
    values = {str(f): _strings(arrays, f"values/{f}") for f in header["fields"]}
    keys = [_array(arrays, f"keys/{i}", np.int64, (None,)) for i in range(header["n_keys"])]
    clusters = {str(n): _clusters(arrays, str(n)) for n in header["clusters"]}
    gazetteers = {
        str(n): frozenset(tuple(p.split(" ")) for p in _strings(arrays, f"gazetteer/{n}")) for n in header["gazetteers"]
    }
    extractor = Extractor(
        templates=Templates.parse(header["templates"]),
        lexicons=Lexicons(clusters, gazetteers, tuple(str(line) for line in header.get("lexicons", ()))),
        min_count=header["min_count"],
        hash_bits=header["hash_bits"],
        dictionary=Dictionary(values, keys),
    )
    if extractor.n_features != header["n_features"]:
        raise StoreError("the dictionary and the weights differ in their number of features", got=extractor.n_features)
    if extractor.hash_bits is None:
        _check_keys(extractor)
    return extractor


def _clusters(arrays: dict[str, Array], name: str) -> dict[str, str]:
    words, values = _strings(arrays, f"cluster-words/{name}"), _strings(arrays, f"clusters/{name}")
    if f"cluster-codes/{name}" not in arrays:  # taggers of 0.1.0 have a cluster for every word
        return dict(zip(words, values))
    codes = _array(arrays, f"cluster-codes/{name}", np.int32, (len(words),))
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(values):
        raise StoreError(f"the clusters {name!r} hold numbers that do not exist")
    return {word: values[code] for word, code in zip(words, codes.tolist())}


def _check_keys(extractor: Extractor) -> None:
    """Keys must rise and be made of codes that exist."""
    dictionary = extractor.dictionary
    assert dictionary is not None
    if len(dictionary.keys) != len(extractor.templates.items):
        raise StoreError("the dictionary and the templates differ in number", got=len(dictionary.keys))
    for template, keys in zip(extractor.templates.items, dictionary.keys):
        span = 1
        for part in template.parts:
            span *= max(len(dictionary.values[part.field]), 1)
        if len(keys) and (keys[0] < 0 or keys[-1] >= span or (np.diff(keys) <= 0).any()):
            raise StoreError("the dictionary holds keys that cannot be", got=template.name)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model; `active` are the corpus labels the weights know, in their order."""

    labels: tuple[str, ...]
    active: Array
    extractor: Extractor
    weights: Weights
    constraint: Constraint | None

    def save(self, folder: Path, parameters: dict[str, Any]) -> None:
        """Write the model into a folder that exists, with the parameters of its estimator."""
        record = {
            "lasca": "tagger",
            "version": VERSION,
            **save_weights(self.extractor, self.weights, folder / "weights.safetensors", {}),
            "labels": list(self.labels),
            "active": self.active.tolist(),
            "parameters": parameters,
        }
        if self.constraint is not None:
            record["constraint"] = rule_rows(self.constraint)
        text = json.dumps(record, ensure_ascii=True, indent=1, allow_nan=False)
        (folder / "tagger.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> tuple[Self, dict[str, Any]]:
        """Read a model that `save` wrote, and the parameters of its estimator."""
        with opened(path, "crf", "weights.safetensors") as (folder, header):
            extractor, weights = load_weights(header, folder / "weights.safetensors")
            labels, active = labels_of(header)
            if len(active) != weights.space.n_labels:
                raise StoreError("the labels and the weights of the tagger differ", got=len(active))
            found = cls(labels, active, extractor, weights, rule_of(header, len(active)))
            return found, dict(header["parameters"])
