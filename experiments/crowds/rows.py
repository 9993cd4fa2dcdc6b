"""The rows of the bench, and the metric of each: a list given before the model was worked on (but for the rows
`prompts*`, `nb-whole*`, `llm-spans*` and `schemes*`, which were added when the model failed on such crowds).

`corpus_of(name)` returns a row's corpus (made once and kept under build/crowds/corpora), `parts_of(name)` the corpora
that a model is fitted on to score the row (one; for rows without gold one for each annotator that is held out).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crowds import corpora
from lasca.corpus import CrowdCorpus

METRICS = {
    "span": "span F1, exact borders and type, seqeval's default reading",
    "relaxed": "relaxed F1: mean share of a predicted span's tokens in gold spans, and the other way round",
    "accuracy": "share of tokens with the gold label",
}
"""All are printed in per cent."""


@dataclass(frozen=True)
class Row:
    """One crowd: its name, what it is, how it is made, its metric, and where it counts."""

    name: str
    title: str
    make: Callable[..., CrowdCorpus]
    options: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "span"
    copies: bool = False
    """Whether some annotators copy others: such rows do not enter the median gain."""
    held_out: bool = False
    """No gold: each annotator in turn is held out and predicted from the others."""
    quick: bool = True
    """Whether the quick form has it."""
    final: bool = False
    """Scored once, at the end: run only when it is named or with --final, and never looked at to choose anything."""

    @property
    def counts(self) -> bool:
        """Whether this is a span row without copies, over which the median gain is taken."""
        return self.metric != "accuracy" and not self.copies and not self.final


T1 = corpora.TABLE_1
ALL3 = ("llm", "weak", "distant")
WHOLE = {"folder": "", "scored": "val/"}
_ROWS = (
    Row("mturk", "MTurk val, all votes", corpora.mturk),
    Row("mturk-1", "MTurk val, 1 annotator per document", corpora.mturk, {"per": 1}),
    Row("mturk-2", "MTurk val, 2 annotators per document", corpora.mturk, {"per": 2}),
    Row("mturk-3", "MTurk val, 3 annotators per document", corpora.mturk, {"per": 3}),
    Row("mturk-no-ids", "MTurk val, all votes, without document ids", corpora.mturk, {"documents": False}),
    Row("nb", "MTurk val where NoiseBench has it: the crowd alone", corpora.machines),
    Row("nb-llm", "the same + llm", corpora.machines, {"sources": ("llm",)}),
    Row("nb-weak", "the same + weak", corpora.machines, {"sources": ("weak",)}, quick=False),
    Row("nb-distant", "the same + distant", corpora.machines, {"sources": ("distant",)}, quick=False),
    Row("nb-all", "the same + llm + weak + distant", corpora.machines, {"sources": ALL3}),
    Row("nb-copies", "the same + five near-copies of llm", corpora.machines, {"copies": 5}, copies=True),
    Row("nb-2", "the same, two workers per document", corpora.machines, {"per": 2}, quick=False),
    Row("nb-2-all", "two workers per document + llm + weak + distant", corpora.machines, {"sources": ALL3, "per": 2}),
    Row("nb-whole", "all of NoiseBench, the crowd alone, scored on val", corpora.machines, WHOLE, quick=False),
    Row("nb-whole-llm", "the same + llm", corpora.machines, {"sources": ("llm",), **WHOLE}, quick=False),
    Row("nb-whole-all", "the same + llm + weak + distant", corpora.machines, {"sources": ALL3, **WHOLE}, quick=False),
    Row("prompts-1", "six simulated LLMs, one prompt each", corpora.prompts, {"per_model": (1,) * 6}),
    Row(
        "prompts",
        "the same, seven prompts each of two of them",
        corpora.prompts,
        {"per_model": (7, 7, 1, 1, 1, 1)},
        copies=True,
    ),
    Row(
        "llm-spans-1",
        "long spans by six noisy simulated LLMs, one prompt each",
        corpora.llm_spans,
        {"per_model": (1,) * 6},
        "relaxed",
    ),
    Row(
        "llm-spans",
        "the same, seven prompts each of two of them",
        corpora.llm_spans,
        {"per_model": (7, 7, 1, 1, 1, 1)},
        "relaxed",
        copies=True,
    ),
    Row(
        "llm-spans-over",
        "six that mark four times too much",
        corpora.llm_spans,
        {"per_model": (1,) * 6, "missed": 0.3, "invented": 1.5},
        "relaxed",
    ),
    Row("schemes-2", "rules that each mark one type, two for each type", corpora.schemes, {"per_type": 2}),
    Row("schemes-1", "the same, one for each type", corpora.schemes, {"per_type": 1}),
    Row("pico-191", "PICO, 191 abstracts", corpora.pico, metric="relaxed"),
    Row("pico-1", "PICO, 191 abstracts, 1 annotator per document", corpora.pico, {"per": 1}, "relaxed"),
    Row("pico-2", "PICO, 191 abstracts, 2 annotators per document", corpora.pico, {"per": 2}, "relaxed"),
    Row("pico-3", "PICO, 191 abstracts, 3 annotators per document", corpora.pico, {"per": 3}, "relaxed", quick=False),
    Row("pico-all", "PICO, all 4,740 abstracts", corpora.pico, {"whole": True}, "relaxed", quick=False),
    Row("btc-a-org", "tweets, a/ORG: two experts each", corpora.btc, {"section": "a", "kind": "ORG"}),
    Row("btc-e-org", "tweets, e/ORG: five workers each", corpora.btc, {"section": "e", "kind": "ORG"}),
    Row("btc-e-per", "tweets, e/PER: five workers each", corpora.btc, {"section": "e", "kind": "PER"}),
    Row("tdga-ca1", "T-DGA, crowd ca1 of table 1", corpora.tdga, {"groups": "ca1", **T1}, "accuracy"),
    Row("tdga-ca2", "T-DGA, crowd ca2", corpora.tdga, {"groups": "ca2", **T1}, "accuracy", quick=False),
    Row("tdga-ca3", "T-DGA, crowd ca3", corpora.tdga, {"groups": "ca3", **T1}, "accuracy"),
    Row(
        "tdga-difficulty",
        "T-DGA, ca1, failing on the same tokens (rho 0.4)",
        corpora.tdga,
        {"errors": "difficulty", "rho": 0.4},
        "accuracy",
    ),
    Row(
        "tdga-spammers",
        "T-DGA, ca1 and six spammers (two of each kind)",
        corpora.tdga,
        {"spammers": {"constant": 2, "random": 2, "prior": 2}, **T1},
        "accuracy",
    ),
    Row("tdga-copiers", "T-DGA, ca1 and five who copy", corpora.tdga, {"copying": 5, **T1}, "accuracy", copies=True),
    Row(
        "tdga-habits",
        "T-DGA, ca1, wrong labels by own habits",
        corpora.tdga,
        {"wrong": "annotator", "common": 0.067},
        "accuracy",
    ),
    Row("tdga-mixed", "T-DGA, ca1, one to five votes per token", corpora.tdga_mixed, metric="accuracy"),
    Row("leoka-1", "LEOKA team 1, each held out", corpora.leoka, {"team": 1}, held_out=True),
    Row("leoka-3", "LEOKA team 3, each held out", corpora.leoka, {"team": 3}, held_out=True, quick=False),
    Row("bratiaa", "bratiaa, four people, each held out", corpora.bratiaa, held_out=True),
    Row("chinese", "Chinese text, simulated crowd", corpora.chinese),
    Row("demo", "demo, entities", corpora.demo),
    Row("final-mturk", "MTurk, all annotated sentences", corpora.mturk_whole, final=True),
    Row("final-mturk-test", "the same fit, test folder", corpora.mturk_whole, {"scored": "test/"}, final=True),
    Row("final-nb", "all sentences of NoiseBench: the crowd alone", corpora.machines, {"folder": ""}, final=True),
    Row("final-nb-llm", "the same + llm", corpora.machines, {"sources": ("llm",), "folder": ""}, final=True),
    Row(
        "final-nb-copies",
        "the same + five near-copies of llm",
        corpora.machines,
        {"copies": 5, "folder": ""},
        final=True,
    ),
    Row("final-nb-all", "the same + all three", corpora.machines, {"sources": ALL3, "folder": ""}, final=True),
    Row(
        "final-nb-2-all",
        "two workers per document + all three",
        corpora.machines,
        {"sources": ALL3, "per": 2, "folder": ""},
        final=True,
    ),
)
ROWS: Mapping[str, Row] = MappingProxyType({row.name: row for row in _ROWS})


def cache_folder() -> Path:
    """Return where corpora are kept: LASCA_BENCH_CACHE, else build/crowds/corpora of the project."""
    return Path(os.environ.get("LASCA_BENCH_CACHE") or corpora.ROOT / "build" / "crowds" / "corpora")


def corpus_of(name: str) -> CrowdCorpus:
    """Return the corpus of a row with all its votes; made once, then loaded from the cache."""
    folder = cache_folder() / name
    try:
        return CrowdCorpus.load(folder)
    except Exception:  # not there yet, or of another version: made anew
        shutil.rmtree(folder, ignore_errors=True)
    row = ROWS[name]
    corpus = row.make(**row.options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    corpus.save(folder)
    return corpus


@cache
def parts_of(name: str) -> Mapping[str, CrowdCorpus]:
    """Return what is fitted to score a row, by the name of the annotator held out ("" where there is a gold)."""
    corpus = corpus_of(name)
    return corpora.without_each(corpus) if ROWS[name].held_out else {"": corpus}
