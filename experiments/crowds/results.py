"""Results of the bench: one small JSON file per (row, model), keyed by what made it.

The name of a file holds row, model with its parameters, and a fingerprint of the sources that can change a result, so
that an interrupted run goes on where it stopped and nothing is mistaken for the result of other code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lasca
from crowds.rows import ROWS
from lasca.defaults import DEFAULT_MODEL

SIMPLE = ("mv", "ds", "mace", "glad", "hmm-crowd", "bsc")
"""The simple models: the default must not be worse than the best of them."""
NO_PART = ("cli", "report", "formats", "datasets", "tagger", "runs", "review", "pipeline")
"""Rooms of the package that change no inferred label."""


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Read "hc-seq:text=false,rounds=2" as a model and its parameters ("default" is the package's default)."""
    name, _, rest = spec.partition(":")
    params = {}
    for part in filter(None, re.split(r",(?=[a-z_]+=)", rest)):
        key, _, value = part.partition("=")
        params[key.strip()] = _value(value.strip())
    return (DEFAULT_MODEL if name == "default" else name), params


def _value(text: str) -> Any:
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except json.JSONDecodeError:
        return text


def fingerprint() -> str:
    """Return a hash of the sources of the package and the bench that can change a result."""
    package = Path(lasca.__file__).parent
    here = Path(__file__).parent
    files = [f for f in package.rglob("*.py") if f.relative_to(package).parts[0] not in NO_PART]
    files += [here / name for name in ("corpora.py", "rows.py", "scores.py", "job.py")]
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:12]


def file_of(folder: Path, row: str, spec: str, sources: str) -> Path:
    """Return where the result of a job belongs."""
    safe = re.sub(r"[^A-Za-z0-9=.,-]+", "_", spec.replace(":", "~"))
    return folder / "results" / f"{row}--{safe}--{sources}.json"


def write(path: Path, data: dict[str, Any]) -> None:
    """Write a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(data, indent=None, allow_nan=True, ensure_ascii=False), encoding="utf-8")
    part.replace(path)


def read(folder: Path, row: str, spec: str, sources: str, *, older: bool = False) -> dict[str, Any] | None:
    """Return a result; `older` takes the newest one of other sources where there is none of these."""
    path = file_of(folder, row, spec, sources)
    found = [path] if path.is_file() else []
    if not found and older:
        pattern = file_of(folder, row, spec, "*").name.replace("[", "[[]")
        found = sorted((folder / "results").glob(pattern), key=lambda p: p.stat().st_mtime)[-1:]
    if not found:
        return None
    data: dict[str, Any] = json.loads(found[0].read_text(encoding="utf-8"))
    other = "resolved" in data and data["resolved"] != parse_spec(spec)[0]  # "default" was another model then
    return None if "error" in data or other else data


def collect(
    folder: Path, rows: Iterable[str], specs: Iterable[str], *, older: bool = False
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the results there are, by row and model."""
    sources, specs = fingerprint(), list(specs)
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row not in ROWS:
            raise SystemExit(f"there is no row {row!r}; there are: {', '.join(ROWS)}")
        found = {spec: read(folder, row, spec, sources, older=older) for spec in specs}
        table[row] = {spec: data for spec, data in found.items() if data is not None}
    return table
