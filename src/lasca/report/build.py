"""Results in, plain data out: everything the page shows, as dictionaries, lists, numbers and text.

Sections of people, labels and ambiguous tokens are files of their own; models side by side and diagnostics are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lasca import __version__
from lasca.ambiguity import Ambiguity
from lasca.corpus import CrowdCorpus
from lasca.report import plots
from lasca.report.annotators import alternative_section, annotator_section, cluster_section
from lasca.report.headline import first_items, headline, next_steps, span_scores, warnings_on_top
from lasca.report.labels import ambiguous_section, confusion_section, gold_section, label_section
from lasca.report.plots import label_styles
from lasca.report.render import clean
from lasca.review.queue import make_queue
from lasca.truth import Truth

__all__ = ["build"]

GOOD_RHAT, GOOD_ESS = 1.05, 100.0


def build(
    corpus: CrowdCorpus,
    truth: Truth,
    ambiguity: Ambiguity,
    confusion: Any,
    *,
    gold: str | None = None,
    tagger_trace: Sequence[float] = (),
    models: Sequence[Mapping[str, Any]] = (),
    record: Mapping[str, Any] | None = None,
    title: str | None = None,
    crowdtruth: bool = False,
) -> dict[str, Any]:
    """Gather what the page shows.

    `gold` names the gold to score against (the first one if there is any), `models` are comparisons as
    `Comparison.to_dict` gives them, `record` is what is known of the run (its run.json); `crowdtruth` adds CrowdTruth's
    worker quality to the table of annotators.
    """
    gold = corpus.gold_name(gold)
    scores = None if gold is None else gold_section(corpus, truth, gold)
    ambiguous = ambiguous_section(corpus, truth, ambiguity, gold)
    known = dict(record or {})
    queue = make_queue(corpus, truth, ambiguity)
    said = [clean(w, 600) for w in known.get("warnings", (*truth.warnings, *ambiguity.warnings))]
    return {
        "title": clean(title or _title(corpus), 120),
        "lasca": __version__,
        "labels": [clean(name, 40) for name in corpus.labels],
        "styles": label_styles(corpus.labels),
        "names": [clean(name, 40) for name in corpus.annotators],
        "reliability": [round(x, 3) for x in truth.annotators.column("reliability").to_pylist()],
        "model": truth.model,
        "headline": headline(corpus, truth, queue),
        "first_items": first_items(corpus, queue),
        "next_steps": next_steps(corpus, queue),
        "load": _load(corpus),
        "warnings": warnings_on_top(corpus, truth, said),
        "annotators": annotator_section(corpus, truth, span_scores(corpus, truth), crowdtruth=crowdtruth),
        "alternatives": alternative_section(corpus),
        "clusters": cluster_section(corpus, truth),
        "ambiguous": ambiguous,
        "confusion": confusion_section(corpus, np.asarray(confusion.matrix), ambiguous["examples"]),
        "label_table": label_section(corpus, truth, scores),
        "gold": scores,
        "models": model_section(models),
        "diagnostics": diagnostics_section(truth, ambiguity, tagger_trace),
        "reproduce": _reproduce(truth, ambiguity, known),
    }


def _title(corpus: CrowdCorpus) -> str:
    source = corpus.load_report.source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return source or "Crowd annotations"


def _load(corpus: CrowdCorpus) -> dict[str, Any]:
    report = corpus.load_report
    return {
        "format": clean(report.format),
        "notes": [clean(note, 400) for note in report.notes],
        "counts": [
            {"what": clean(what), "n": n, "example": clean(example, 200)} for what, n, example in report.in_words()
        ],
    }


def _reproduce(truth: Truth, ambiguity: Ambiguity, record: Mapping[str, Any]) -> dict[str, Any]:
    params = {name: value for name, value in truth.params.items() if value is not None}
    return {
        "command": clean(str(record.get("command", "")), 1000),
        "truth": [{"name": name, "value": clean(str(value), 200)} for name, value in params.items()],
        "ambiguity": [{"name": k, "value": clean(str(v), 200)} for k, v in ambiguity.params.items()],
        "versions": [{"name": clean(k), "value": clean(str(v))} for k, v in dict(record.get("versions", {})).items()],
        "input": [
            {"name": clean(k, 200), "value": clean(str(v), 100)} for k, v in dict(record.get("input", {})).items()
        ],
    }


def model_section(models: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return a table per part of the corpus, the best value of each column marked; None if nothing was compared."""
    if not models:
        return None
    parts = [_part(name, models) for name in models[0].get("scores", {})]
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
    rows = []
    for name, value in rhat.items():
        known = details.get(name, {})
        numbers = {"mean": known.get("mean"), "mcse": known.get("mcse"), "rhat": value, "ess": ess.get(name)}
        rows.append({"name": str(name).replace("_", " "), **{key: _float(number) for key, number in numbers.items()}})
    return rows


def _verdict(quantities: list[dict[str, Any]], found: Mapping[str, Any]) -> str:
    if quantities:
        worst = max((q["rhat"] for q in quantities if q["rhat"] is not None), default=1.0)
        least = min((q["ess"] for q in quantities if q["ess"] is not None), default=0.0)
        good = worst <= GOOD_RHAT and least >= GOOD_ESS
        verdict = "The chains agree" if good else "The chains do not agree well: take more sweeps"
        return f"{verdict} (largest R-hat {worst:.3f}, smallest effective sample size {least:.0f})."
    if isinstance(members := found.get("members"), list):
        done = sum(bool(member.get("converged")) for member in members)
        return f"Of the {len(members)} models that are averaged, {done} converged."
    if "converged" in found:
        return "The inference converged." if found["converged"] else "The inference stopped before it converged."
    return ""


def _numbers(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    shown: dict[str, str] = {}
    for name, value in found.items():
        if isinstance(value, bool | np.bool_):
            shown[name] = "yes" if value else "no"
        elif isinstance(value, int | np.integer):
            shown[name] = f"{int(value):,}"
        elif isinstance(value, float | np.floating | str):
            shown[name] = value if isinstance(value, str) else f"{value:.6g}"
    return [{"name": name.replace("_", " "), "value": value} for name, value in shown.items()]


def _float(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
