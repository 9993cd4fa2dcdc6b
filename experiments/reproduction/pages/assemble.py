"""The whole page, in order."""

from __future__ import annotations

from collections import Counter

from reproduction.jobs import Results, Scope
from reproduction.page import Block, Heading, Text
from reproduction.pages.ambiguity import ambiguity
from reproduction.pages.beyond import beyond
from reproduction.pages.clusters import clusters
from reproduction.pages.findings import corrections, findings
from reproduction.pages.objectives import objectives
from reproduction.pages.table1 import table_1
from reproduction.pages.table2 import table_2
from reproduction.pages.table3 import table_3

__all__ = ["assemble"]

WORDS = (
    "**T-DGA** is the paper's corpus of tweets, in which two people gave every word a part of speech (gold 1, gold 2); "
    "crowds over it are simulated: **ca1**, **ca2** and **ca3** have ever fewer good annotators. **HC** is the paper's "
    "model with clusters of annotators, **HC-CLL** a tagger trained on HC's truth by likelihood, **LA-SCA** the same "
    "tagger trained with the paper's cost-sensitive objective (where no tagger takes part, LA-SCA is HC). **HC with "
    "sequences** (`hc-seq`) is our model: it also knows that labels follow one another, and reads the text. **robust** "
    "is the default of `lasca run`; **CRF-MA** (Rodrigues et al. 2014) and **Raykar** (Raykar et al. 2010) infer the "
    "truth and learn a classifier of the text together. E1–E8 are the corrections listed at the end."
)


def assemble(results: Results, scope: Scope, codes: Counter[str], lacking: Counter[str]) -> list[Block]:
    """Put the results onto one page; `codes` counts jobs by state of the code, `lacking` those not run, by section."""
    command = "make reproduction QUICK=1" if scope.quick else "make reproduction"
    n = len(scope.seeds)
    return [
        Text(
            'The experiments of "Learning Ambiguity from Crowd Sequential Annotations" (Lu, arXiv 2301.01579) on the '
            f"paper's data, and some beyond it. This page was written by `{command}`: of the results on it only the "
            f"paper's own were typed in. {'One seed' if n == 1 else f'Seeds 0 to {n - 1}'}."
            + (
                " A quick run leaves out what takes long: figures from one seed say little about differences."
                * scope.quick
            )
        ),
        Text(WORDS),
        *findings(results),
        *table_1(results),
        *table_2(results),
        *table_3(results),
        *objectives(results),
        *ambiguity(results),
        *clusters(results),
        *beyond(results),
        *corrections(),
        *_how(results, codes, lacking),
    ]


def _how(results: Results, codes: Counter[str], lacking: Counter[str]) -> list[Block]:
    cpu = sum(result["used"]["cpu"] for _, result in results.rows)
    wall = sum(result["used"]["wall"] for _, result in results.rows)
    return [
        Heading("How it was run"),
        Text(
            f"{len(results.rows):,} jobs, {cpu / 60:.0f} minutes of CPU time ({wall / 60:.0f} minutes of wall time, "
            f"added up over jobs that ran side by side), {_states(codes)}. Every job has its seed; each library "
            f"used one thread.{_lacking(lacking)}"
        ),
    ]


def _states(codes: Counter[str]) -> str:
    """Say which states of the code measured how much."""
    if len(codes) == 1:
        return f"all with one state of the code (`{next(iter(codes))}`)"
    words = ", ".join(f"`{code}` ({n:,} jobs)" for code, n in codes.most_common())
    return f"with {len(codes)} states of the code: {words}; results.json says which job is from which"


def _lacking(lacking: Counter[str]) -> str:
    """Say what the page would have after a whole run."""
    if not lacking:
        return ""
    words = ", ".join(f"`{section}` ({n} jobs)" for section, n in lacking.items())
    return f" Not run yet, and – above: {words}; `python -m reproduction --again` runs what is lacking."
