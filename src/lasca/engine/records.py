"""Frozen records of arrays in files: states of learners, and what they keep of blocks. No pickle.

A record is a dataclass whose fields are arrays, numbers, strings, None, tuples, or records. One file holds it all: the
arrays as safetensors, and how they belong together as JSON beside them. What is read back is equal bit by bit.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lasca.errors import StoreError
from lasca.files import whole_file

__all__ = ["read_record", "write_record"]


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
        own = {f.name: _tree(getattr(value, f.name), arrays) for f in fields(value)}
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
