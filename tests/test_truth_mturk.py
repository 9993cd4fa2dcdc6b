"""Token models on the CoNLL-2003 MTurk corpus: reference figures, span F1 on annotated sentences / test folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import datasets, evaluate
from lasca.corpus import CrowdCorpus
from lasca.truth import TruthModel, model_class

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def mturk(data_dir: Path) -> CrowdCorpus:
    return datasets.load("conll2003-mturk", path=data_dir)


def scores(corpus: CrowdCorpus, model: TruthModel) -> tuple[float, float]:
    """Return span F1 (lenient, in percent) on the annotated sentences and on the test folder."""
    gold, found = corpus.label_names(corpus.golds["gold"]), model.fit(corpus).sequences()
    test = np.array([name.startswith("test/") for name in corpus.sequence_ids])
    parts = [np.flatnonzero(mask) for mask in (corpus.annotated_sequences, test)]
    one, two = (100 * evaluate.spans([gold[i] for i in part], [found[i] for i in part]).f1 for part in parts)
    return one, two


@pytest.mark.parametrize(
    ("ties", "expected"), [("first", (67.0, 64.5)), ("O", (61.8, 58.3)), ("frequency", (61.5, 58.1))]
)
def test_majority_vote_by_tie_rule(mturk: CrowdCorpus, ties: str, expected: tuple[float, float]) -> None:
    assert scores(mturk, model_class("mv")(ties=ties)) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(
    ("name", "settings", "least"),
    [
        ("ds", {}, (74.0, 73.0)),
        ("ds", {"variational": True}, (74.0, 73.0)),
        ("mace", {}, (66.0, 65.0)),
        ("mace", {"restarts": 1, "max_iter": 10}, (70.0, 70.0)),
        ("glad", {}, (66.5, 63.5)),
        ("sembler", {"max_iter": 3}, (67.0, 64.0)),
    ],
)
def test_span_scores(mturk: CrowdCorpus, name: str, settings: dict[str, Any], least: tuple[float, float]) -> None:
    found = scores(mturk, model_class(name)(**settings))
    assert found[0] >= least[0]
    assert found[1] >= least[1]
