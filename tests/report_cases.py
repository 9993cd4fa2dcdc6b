"""Small results to make reports of, and ways to look at folders."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lasca import report, simulate
from lasca.ambiguity import Ambiguity, find_ambiguity
from lasca.confusion import LabelConfusion, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth, model_class

NASTY = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=2</script>",
    '"><img src=x onerror="window.hacked=3">',
    "<!--<script>",
    "&lt;b&gt;&amp;",
    "{{ 7 * 7 }}{% raw %}",
    "\u2028\u2029\u202eevil\x00\x1b[31m",
    "javascript:window.hacked=4//'`${window.hacked=5}",
)


@dataclass(frozen=True)
class Case:
    corpus: CrowdCorpus
    truth: Truth
    ambiguity: Ambiguity
    confusion: LabelConfusion

    def data(self, **options: Any) -> dict[str, Any]:
        return report.build(self.corpus, self.truth, self.ambiguity, self.confusion, **options)

    def page(self, **options: Any) -> str:
        return report.render(self.data(**options))


def case_of(
    corpus: CrowdCorpus, model: str = "ds", method: str = "two-truths", fraction: float = 0.1, **params: Any
) -> Case:
    truth = model_class(model)(**params).fit(corpus)
    ambiguity = find_ambiguity(corpus, truth, method=method, fraction=fraction)
    return Case(corpus, truth, ambiguity, label_confusion(corpus, truth, ambiguity))


def demo_case() -> Case:
    """The demo crowd with two clusters, from chains too short to be good, and long enough for a page."""
    params = {"n_clusters": 2, "n_chains": 2, "n_warmup": 15, "n_samples": 15, "seed": 0}
    return case_of(simulate.demo_crowd("ner"), "hc", **params)


def nasty_corpus() -> CrowdCorpus:
    """Every string that can come from outside – tokens, labels, annotators, ids, notes – is made to do harm."""
    rng = np.random.default_rng(0)
    tokens = [[NASTY[(i + k) % len(NASTY)] for k in range(4)] for i in range(12)]
    labels = ["O", *NASTY[:3]]
    annotations = {
        f"{NASTY[a]}-{a}": [[labels[int(rng.integers(len(labels)))] for _ in row] for row in tokens] for a in range(5)
    }
    golds = {NASTY[0]: [[labels[0] for _ in row] for row in tokens]}
    ids = [f"{NASTY[i % len(NASTY)]}/{i}" for i in range(len(tokens))]
    return CrowdCorpus.from_sequences(tokens, annotations, golds=golds, sequence_ids=ids)


def files_below(folder: Path) -> dict[str, bytes]:
    """Return all files by their path; run.json without its timings (and its sum), which no two runs share."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    if "run.json" in found:
        record = json.loads(found["run.json"])
        del record["timings"]
        found["run.json"] = json.dumps(record).encode()
        sums = found["SHA256SUMS"].splitlines(keepends=True)
        found["SHA256SUMS"] = b"".join(line for line in sums if not line.endswith(b"  run.json\n"))
    return found
