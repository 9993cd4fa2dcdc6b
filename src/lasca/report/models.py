"""The truth models side by side, where `lasca compare` was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lasca.report.text import clean

__all__ = ["model_section"]


def model_section(models: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return a table per part of the corpus, the best value of each column marked; None if nothing was compared."""
    if not models:
        return None
    names = list(models[0].get("scores", {}))
    parts = [_part(name, models) for name in names]
    return {
        "parts": parts,
        "times": [] if parts else [{"model": clean(m["model"]), "cpu": m["cpu_seconds"]} for m in models],
        "warnings": [clean(f"{m['model']}: {w}", 400) for m in models for w in m.get("warnings", ())],
    }


def _part(name: str, models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [{"model": clean(m["model"]), "cpu": m["cpu_seconds"], **m["scores"][name]} for m in models]
    best = {}
    for column, sign in (("accuracy", 1), ("f1", 1), ("macro_f1", 1), ("cross_entropy", -1), ("ece", -1)):
        values = [sign * row[column] for row in rows if row.get(column) is not None]
        best[column] = sign * max(values) if values else None
    return {"name": clean(name), "rows": rows, "best": best, "n_tokens": rows[0]["n_tokens"]}
