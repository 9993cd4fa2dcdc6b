"""Beyond the paper: few annotators, spammers, copying annotators, tokens that are hard for everybody.

The crowd with all its annotators and no trouble is that of table 1, which `tweets` measures.
"""

from __future__ import annotations

from typing import Any

from lasca import simulate
from reproduction.jobs import MODELS, Job, Scope
from reproduction.paper import CROWDS
from reproduction.tweets import CROWD_KINDS, fitted, tdga, truth_scores

__all__ = ["LEVELS", "PER_SEQUENCE", "TROUBLES", "jobs", "measure"]

PER_SEQUENCE = range(1, 15)
TROUBLES: dict[str, dict[str, Any]] = {
    "5 spammers, one label": {"spammers": {"constant": 5}},
    "5 spammers, any label": {"spammers": {"random": 5}},
    "5 spammers, by frequency": {"spammers": {"prior": 5}},
    "5 copying annotators": {"copying": 5},
}
QUICK = ("5 spammers, by frequency", "5 copying annotators")
LEVELS = "hc, levels"
"""HC with tokens that are easy or hard: an option of the model, run on hard tokens only."""
SLOW = {"hc": 7.0, LEVELS: 9.0, "hc-seq": 9.0, "sembler": 2.0}


def jobs(scope: Scope) -> list[Job]:
    """Return the crowds to look at, each with all models."""
    cases = [("annotators", "ca2", str(k)) for k in ((1, 3) if scope.quick else PER_SEQUENCE)]
    cases += [("trouble", "ca2", name) for name in (QUICK if scope.quick else TROUBLES)]
    cases += [("difficulty", groups, "0.4") for groups in CROWDS]
    return [
        Job(
            "beyond",
            {"case": case, "groups": groups, "value": value, "seed": seed, "model": model},
            SLOW.get(model, 0.5),
        )
        for case, groups, value in cases
        for seed in scope.seeds
        for model in (*MODELS, *((LEVELS,) if case == "difficulty" else ()))
    ]


def measure(case: str, groups: str, value: str, seed: int, model: str) -> dict[str, Any]:
    """Fit one model to one crowd."""
    options = dict(CROWD_KINDS["table-1"])
    if case == "annotators":
        options["annotators_per_sequence"] = int(value)
    elif case == "trouble":
        options |= TROUBLES[value]
    else:
        options = {"errors": "difficulty", "wrong": "uniform", "rho": float(value)}
    corpus = simulate.crowd(tdga(), gold="gold1", groups=groups, seed=seed, **options)
    truth = fitted("hc", corpus, seed, difficulty=True) if model == LEVELS else fitted(model, corpus, seed)
    return truth_scores(corpus, truth)
