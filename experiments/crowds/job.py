"""One job of the bench, in a process of its own: fit a model on a row, score it, write the result as JSON."""

from __future__ import annotations

import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from crowds import results
from crowds.rows import ROWS, corpus_of, parts_of
from crowds.scores import TOTALS, metric_of, score
from lasca.corpus import CrowdCorpus
from lasca.truth import TRUTH_MODELS, Truth, model_class

LOADED = tuple(TRUTH_MODELS)
"""All models, loaded before any job is forked: loading is no part of a job's time."""


def run(row_name: str, spec: str, *, seed: int = 0, threads: int = 1) -> dict[str, Any]:
    """Fit and score; rows without gold are fitted once with all votes and once without each annotator."""
    row = ROWS[row_name]
    model, params = results.parse_spec(spec)
    corpus = corpus_of(row_name)
    wall, cpu = time.perf_counter(), time.process_time()
    truth = fit(model, params, corpus, seed, threads)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = score(corpus, truth, row)
    if row.held_out:
        parts = [score(part, fit(model, params, part, seed, threads), row) for part in parts_of(row_name).values()]
        found |= together(parts, row.metric)
    return {
        "row": row_name,
        "model": spec,
        "resolved": model,
        "params": params,
        "seed": seed,
        **found,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "peak_mb": memory,
        "diagnostics": plain(dict(truth.diagnostics)),
        "warnings": list(truth.warnings),
    }


def fit(model: str, params: dict[str, Any], corpus: CrowdCorpus, seed: int, threads: int) -> Truth:
    """Fit a model at its defaults but for these parameters, with this seed and so many threads."""
    estimator = model_class(model)(**params)
    known = estimator.get_params()
    given = {"seed": seed, "n_threads": threads, "threads": threads}
    estimator.set_params(**{n: v for n, v in given.items() if n in known and n not in params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(corpus)


def together(parts: list[dict[str, Any]], metric: str) -> dict[str, Any]:
    """Add up the documents of all held-out annotators; calibration and shares are means over them."""
    documents: dict[str, Any] = {}
    for part in parts:
        for name, counts in part["documents"].items():
            documents[name] = (np.array(counts) + documents.get(name, np.zeros(len(TOTALS)))).tolist()
    total = np.array(list(documents.values())).sum(axis=0)
    means = ("cross_entropy", "ece", "marked_scored", "marked_gold")
    return {
        "documents": documents,
        "value": metric_of(total, metric),
        "strict": metric_of(total, "span"),
        "accuracy": metric_of(total, "accuracy"),
        "each": [part["value"] for part in parts],
        **{name: float(np.mean([part[name] for part in parts])) for name in means},
    }


def plain(value: Any, depth: int = 0) -> Any:
    """Return what JSON can hold; long lists are cut."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(k): plain(v, depth + 1) for k, v in value.items()} if depth < 4 else "…"
    if isinstance(value, list | tuple):
        return [plain(v, depth + 1) for v in value[:50]] if depth < 4 else "…"
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def work(row: str, spec: str, seed: int, threads: int, path: str, sources: str) -> None:
    """Run a job and write its result, or what went wrong, into a file."""
    try:
        found = run(row, spec, seed=seed, threads=threads)
    except Exception as error:
        found = {"row": row, "model": spec, "error": f"{type(error).__name__}: {error}"}
    results.write(Path(path), {**found, "sources": sources})


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6])
