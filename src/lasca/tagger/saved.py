"""What saved taggers of all kinds share: a folder with `tagger.json`, a file of arrays and SHA256SUMS.

SHA256SUMS tells whether the files are still what was written. A folder from elsewhere is not trusted all the same: what
is read is checked, and whatever goes wrong is told as damage of that folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from lasca.crf.decode import Constraint
from lasca.errors import LascaError, StoreError
from lasca.files import check_sums

__all__ = ["VERSION", "labels_of", "opened", "rule_of", "rule_rows", "write_card"]

Array = np.ndarray[Any, Any]
VERSION = 1
MAX_HEADER = 64 << 20


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
