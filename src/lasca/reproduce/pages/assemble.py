"""The whole page, in order."""

from __future__ import annotations

from lasca.reproduce.blocks import Block, Heading, Page, Text
from lasca.reproduce.jobs import Results, Scope
from lasca.reproduce.pages.ambiguity import ambiguity
from lasca.reproduce.pages.beyond import beyond
from lasca.reproduce.pages.clusters import clusters
from lasca.reproduce.pages.findings import corrections, findings
from lasca.reproduce.pages.objectives import objectives
from lasca.reproduce.pages.table1 import table_1
from lasca.reproduce.pages.table2 import table_2
from lasca.reproduce.pages.table3 import table_3

__all__ = ["assemble"]


def assemble(results: Results, scope: Scope, code: str) -> Page:
    """Put the results of all jobs onto one page; `code` names the state of the code that measured them."""
    command = "lasca reproduce --quick" if scope.quick else "lasca reproduce"
    n = len(scope.seeds)
    blocks: list[Block] = [
        Text(
            'The experiments of "Learning Ambiguity from Crowd Sequential Annotations" (Lu, arXiv 2301.01579) on the '
            f"paper's data, and some beyond it. This page was written by `{command}`; nothing on it but the paper's "
            f"own figures was typed in. {'One seed' if n == 1 else f'Seeds 0 to {n - 1}'}."
            + (
                " A quick run leaves out what takes long: figures from one seed say little about differences."
                * scope.quick
            )
        ),
        *findings(results),
        *table_1(results),
        *table_2(results),
        *table_3(results),
        *objectives(results),
        *ambiguity(results),
        *clusters(results),
        *beyond(results),
        *corrections(),
        *_how(results, code),
    ]
    return Page("The paper's experiments, run anew", tuple(blocks))


def _how(results: Results, code: str) -> list[Block]:
    cpu = sum(result["used"]["cpu"] for _, result in results.rows)
    wall = sum(result["used"]["wall"] for _, result in results.rows)
    return [
        Heading("How it was run"),
        Text(
            f"{len(results.rows):,} jobs, {cpu / 60:.0f} minutes of CPU time ({wall / 60:.0f} minutes of wall time, "
            f"added up over jobs that ran side by side), all with one state of the code (`{code}`). Every job has its "
            "seed; each library used one thread."
        ),
    ]
