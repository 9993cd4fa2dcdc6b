"""Did the inference work: traces, R-hat, effective sample sizes, and what else a model tells of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lasca.ambiguity import Ambiguity
from lasca.report import plots
from lasca.truth import Truth

__all__ = ["diagnostics_section"]

GOOD_RHAT, GOOD_ESS = 1.05, 100.0


def diagnostics_section(truth: Truth, ambiguity: Ambiguity, tagger_trace: Any) -> dict[str, Any]:
    """Return traces, the table of R-hat and ESS where there are chains, and the plain numbers of the model."""
    found = dict(truth.diagnostics)
    traces = [
        {"title": f"Truth model ({truth.model})", "plot": plots.trace_plot(truth.trace)},
        {"title": f"Ambiguity ({ambiguity.method})", "plot": plots.trace_plot(ambiguity.trace)},
        {"title": "Tagger", "plot": plots.trace_plot(tagger_trace)},
    ]
    quantities = _quantities(found)
    bic = found.get("bic")
    return {
        "traces": [trace for trace in traces if trace["plot"] is not None],
        "quantities": quantities,
        "verdict": _verdict(quantities, found),
        "numbers": _numbers(found),
        "bic": [dict(row) for row in bic] if isinstance(bic, list | tuple) else [],
    }


def _quantities(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    rhat, ess = found.get("rhat"), found.get("ess")
    if not isinstance(rhat, Mapping) or not isinstance(ess, Mapping):
        return []
    details = found.get("quantities")
    details = details if isinstance(details, Mapping) else {}
    return [
        {
            "name": str(name).replace("_", " "),
            "mean": _float(details.get(name, {}).get("mean")),
            "mcse": _float(details.get(name, {}).get("mcse")),
            "rhat": _float(value),
            "ess": _float(ess.get(name)),
        }
        for name, value in rhat.items()
    ]


def _verdict(quantities: list[dict[str, Any]], found: Mapping[str, Any]) -> str:
    if quantities:
        worst = max((q["rhat"] for q in quantities if q["rhat"] is not None), default=1.0)
        least = min((q["ess"] for q in quantities if q["ess"] is not None), default=0.0)
        good = worst <= GOOD_RHAT and least >= GOOD_ESS
        verdict = "The chains agree" if good else "The chains do not agree well: take more sweeps"
        return f"{verdict} (largest R-hat {worst:.3f}, smallest effective sample size {least:.0f})."
    if "converged" in found:
        return "The inference converged." if found["converged"] else "The inference stopped before it converged."
    return ""


def _numbers(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    numbers = []
    for name, value in found.items():
        if isinstance(value, bool | np.bool_):
            numbers.append({"name": name.replace("_", " "), "value": "yes" if value else "no"})
        elif isinstance(value, int | np.integer):
            numbers.append({"name": name.replace("_", " "), "value": f"{int(value):,}"})
        elif isinstance(value, float | np.floating | str):
            numbers.append(
                {"name": name.replace("_", " "), "value": f"{value:.6g}" if not isinstance(value, str) else value}
            )
    return numbers


def _float(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
