"""The tables of the bench as Markdown: rows × models, and what stands beside the metric."""

from __future__ import annotations

from statistics import median
from typing import Any, NamedTuple

from crowds.results import SIMPLE
from crowds.rows import ROWS
from crowds.scores import bootstrap

Results = dict[str, dict[str, dict[str, Any]]]
ALLOWED = 0.5
"""How many points the default may lie below the best simple model; more only if the interval reaches 0."""


class Difference(NamedTuple):
    """The default (or a variant) against the best simple model of a row, in points."""

    best: str
    points: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the model is no worse than the best simple one, or may be none."""
        return self.points >= -ALLOWED or self.high >= 0


def difference(row: str, found: dict[str, dict[str, Any]], spec: str) -> Difference | None:
    """Compare a model with the best simple one there is a result of."""
    simple = {name: data["value"] for name, data in found.items() if name in SIMPLE and name != spec}
    if spec not in found or not simple:
        return None
    best = max(simple, key=lambda name: simple[name])
    low, high = bootstrap(found[spec]["documents"], found[best]["documents"], ROWS[row].metric)
    return Difference(best, found[spec]["value"] - simple[best], low, high)


def metrics(found: Results, models: list[str], sources: str) -> str:
    """Return the table of metrics; a star marks results of other sources."""
    others = [spec for spec in models if spec not in SIMPLE]
    head = ["row", "metric", *models, *(f"{spec} − best simple" for spec in others)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    gains: dict[str, list[float]] = {spec: [] for spec in others}
    failing: dict[str, list[str]] = {spec: [] for spec in others}
    for row, line in found.items():
        values = {spec: data["value"] for spec, data in line.items()}
        top = max(values.values(), default=0.0)
        cells = [row, ROWS[row].metric]
        for spec in models:
            if spec not in values:
                cells.append("–")
                continue
            text = f"{values[spec]:.1f}" + ("" if line[spec].get("sources") == sources else "*")
            cells.append(f"**{text}**" if values[spec] == top else text)
        for spec in others:
            gap = difference(row, line, spec)
            if gap is None:
                cells.append("–")
                continue
            if ROWS[row].counts:
                gains[spec].append(gap.points)
            if not gap.holds:
                failing[spec].append(row)
            cells.append(f"{gap.points:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}] {gap.best}{'' if gap.holds else ' ✗'}")
        lines.append("| " + " | ".join(cells) + " |")
    for spec in others:
        if gains[spec]:
            lines.append(
                f"\n{spec}: median gain over {len(gains[spec])} span rows without copies {median(gains[spec]):+.2f}; "
                f"worse than the best simple model on: {', '.join(failing[spec]) or 'none'}"
            )
    return "\n".join(lines)


def details(found: Results, spec: str) -> str:
    """Return what stands beside the metric for one model."""
    head = ["row", "metric", "strict F1", "cross entropy", "ECE", "marked % (gold)", "overruled ≥2", "overruled ≥3"]
    head += ["right there: it / they", "CPU s", "MB", "chose"]
    lines = [f"### {spec}\n", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row, line in found.items():
        if spec not in line:
            continue
        data = line[spec]
        agree = data["unanimous"]
        right = f"{agree['truth_right_3']} / {agree['people_right_3']}" if "truth_right_3" in agree else "–"
        strict = data.get("strict")
        marked = f"{data['marked']:.1f} ({data['marked_gold']:.1f})" if strict is not None else "–"
        cells = [
            row,
            f"{data['value']:.1f}",
            "–" if strict is None else f"{strict:.1f}",
            f"{data['cross_entropy']:.3f}",
            f"{data['ece']:.3f}",
            marked,
            f"{agree['overruled_2']} of {agree['tokens_2']}",
            f"{agree['overruled_3']} of {agree['tokens_3']}",
            right,
            f"{data['cpu_seconds']:.1f}",
            f"{data['peak_mb']:.0f}",
            chose(data["diagnostics"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chose(diagnostics: dict[str, Any]) -> str:
    """Say in a few words what a model decided by itself: the short entries of its diagnostics that are no counts."""
    words = []
    for name, value in diagnostics.items():
        if isinstance(value, bool | str) and len(str(value)) <= 60:
            words.append(f"{name}={value}")
        elif name in CHOICES and value is not None:
            words.append(f"{name}={_short(value)}")
    return ", ".join(words).replace("|", "/")


def _short(value: Any) -> str:
    """Return numbers with three digits, and of long descriptions the names alone."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_short(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "; ".join(str(v["name"]) if isinstance(v, dict) and "name" in v else _short(v) for v in value)
    return str(value)


CHOICES = ("iterations", "rounds", "temperature", "doubt", "weights", "families", "powers", "n_clusters", "chosen")
