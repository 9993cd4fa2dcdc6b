"""What the frozen records share: the store they are saved in, copies, frames, cards for notebooks. No pickle is stored.

A *folder* is for people and later versions: KIND.json with `lasca` (the kind) and `version`, arrays.safetensors, tables
as Parquet, and SHA256SUMS; `loading` puts into words what is wrong with one. A *file* (`write_record`) is for the work
itself, states of learners and what they keep of blocks: a dataclass whose fields are arrays, numbers, strings, None,
tuples, or records. The arrays are safetensors, and how they belong together is JSON beside them. What is read back is
equal bit by bit.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lasca.errors import LascaError, StoreError, excerpt
from lasca.estimator import check_choice
from lasca.files import check_sums, whole_file, whole_folder

__all__ = ["Record", "card", "frame", "loading", "plain", "read_header", "read_record", "save_folder", "write_record"]

WIDEST = 60
"""Characters of a name that a card shows."""


class Record:
    """The base of frozen dataclasses whose mappings are read-only views: these alone cannot be pickled or copied."""

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return _made, (type(self), {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in values.items()})


def _made(cls: type[Record], values: dict[str, Any]) -> Record:
    return cls(**values)


def save_folder(
    path: str | Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, Any] | None = None,
    tables: Mapping[str, pa.Table] | None = None,
    *,
    overwrite: bool = False,
    indent: int | None = 1,
) -> None:
    """Write a record into a folder, whole or not at all; its kind is `header["lasca"]`."""
    with whole_folder(path, overwrite=overwrite) as folder:
        text = json.dumps(header, indent=indent, ensure_ascii=False)
        (folder / f"{header['lasca']}.json").write_text(text, encoding="utf-8")
        if arrays is not None:
            save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, folder / "arrays.safetensors")
        for name, table in (tables or {}).items():
            pq.write_table(table, folder / f"{name}.parquet")


@contextmanager
def loading(path: str | Path, what: str, hint: str | None = None) -> Iterator[Path]:
    """Give the folder of a saved record; what is wrong with it is said in words: it is not there, or damaged.

    The hint is for where it is not there.
    """
    try:
        yield Path(path)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"there is no {what} to load", where=str(path), got=error.strerror, hint=hint) from error
    except (
        pa.ArrowException, SafetensorError, LascaError, KeyError, TypeError, ValueError, AttributeError, RecursionError,
        OverflowError,
    ) as error:  # fmt: skip
        raise StoreError(f"the saved {what} is damaged", where=str(path), got=str(error)) from error


def read_header(
    folder: Path, kind: str, versions: Collection[int], *files: str, hint: str | None = None
) -> dict[str, Any]:
    """Return KIND.json of a folder whose files are whole, if it is of one of these versions."""
    check_sums(folder, f"{kind}.json", *files)
    header: dict[str, Any] = json.loads((folder / f"{kind}.json").read_text(encoding="utf-8"))
    if header["lasca"] != kind or header["version"] not in versions:
        words = f"not {'an' if kind[0] in 'aeiou' else 'a'} {kind} of this version of LASCA"
        raise StoreError(words, where=str(folder), got=header["version"], hint=hint)
    return header


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold: arrays into lists, what JSON knows nothing of into how Python writes it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def write_record(record: Any, path: Path) -> None:
    """Write a record into a file, whole or not at all."""
    arrays: dict[str, Any] = {}
    tree = _tree(record, arrays)
    with whole_file(path) as scratch:
        save_file(arrays, scratch, metadata={"record": json.dumps(tree)})


def read_record(path: Path) -> Any:
    """Read a record that `write_record` wrote."""
    try:
        with safe_open(path, framework="numpy") as file:
            tree = json.loads(file.metadata()["record"])
            return _value(tree, file)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        raise StoreError("what was kept of the work is damaged", where=str(path), got=str(error)) from error


def _tree(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name, "shape": list(np.shape(value))}
    if is_dataclass(value):
        kind = type(value)
        stays = [f.name for f in fields(value) if f.metadata.get("kept", True)]
        own = {name: _tree(getattr(value, name), arrays) for name in stays}
        return {"record": [kind.__module__, kind.__qualname__], "fields": own}
    if isinstance(value, tuple):
        return {"tuple": [_tree(item, arrays) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"a record cannot hold a {type(value).__name__}")


def _value(tree: Any, file: Any) -> Any:
    if "array" in tree:
        return file.get_tensor(tree["array"]).reshape(tree["shape"])
    if "tuple" in tree:
        return tuple(_value(item, file) for item in tree["tuple"])
    if "value" in tree:
        return tree["value"]
    module, name = tree["record"]
    kind = getattr(importlib.import_module(module), name)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise TypeError(f"{module}.{name} is no record")
    return kind(**{key: _value(item, file) for key, item in tree["fields"].items()})


def frame(table: Any, backend: str) -> Any:
    """Return an Arrow table as a frame of the wanted library: "pyarrow", "pandas" or "polars"."""
    check_choice("backend", backend, ("pyarrow", "pandas", "polars"))
    if backend == "pyarrow":
        return table
    import narwhals as nw

    made = nw.from_native(table)
    return made.to_pandas() if backend == "pandas" else made.to_polars()


def card(title: str, facts: Mapping[str, object], rows: Sequence[Mapping[str, object]] = (), more: int = 0) -> str:
    """Return HTML for notebooks: a table of facts, then one of rows with their keys as a header, and how many are left.

    Names come from files: they are cut, escaped and kept from turning the text around them.
    """
    lines = [f"<b>{_shown(title)}</b>", "<table>"]
    lines += [f'<tr><th style="text-align:left">{_shown(k)}</th><td>{_shown(v)}</td></tr>' for k, v in facts.items()]
    lines.append("</table>")
    if rows:
        lines.append(f"<table><tr>{''.join(f'<th>{_shown(key)}</th>' for key in rows[0])}</tr>")
        lines += [f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in row.values())}</tr>" for row in rows]
        lines.append(f"</table>{f'<i>and {more:,} more</i>' if more > 0 else ''}")
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"<bdi>{escape(excerpt(str(value), WIDEST))}</bdi>"
