"""Results in, plain data out: everything the page shows, as dictionaries, lists, numbers and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lasca import __version__
from lasca.ambiguity import Ambiguity
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError
from lasca.report.ambiguous import ambiguous_section
from lasca.report.annotators import alternative_section, annotator_section
from lasca.report.clusters import cluster_section
from lasca.report.confused import confusion_section
from lasca.report.diagnostics import diagnostics_section
from lasca.report.headline import first_items, headline, next_steps, span_scores, warnings_on_top
from lasca.report.labels import gold_section, label_section
from lasca.report.models import model_section
from lasca.report.palette import label_styles
from lasca.report.text import clean
from lasca.review.queue import make_queue
from lasca.truth import Truth

__all__ = ["build"]


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
    gold = next(iter(corpus.golds), None) if gold is None else gold
    if gold is not None and gold not in corpus.golds:
        raise CorpusError(f"there is no gold of that name (there is: {', '.join(corpus.golds) or 'none'})", got=gold)
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
            {"what": clean(kind), "n": n, "example": clean(next(iter(report.examples.get(kind, ())), ""), 200)}
            for kind, n in report.counts.items()
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
