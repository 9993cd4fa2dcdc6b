"""The tagger on CoNLL-2003: the quality that was promised, with the fast mode in CI and L-BFGS among the slow tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.tagger import CrfTagger

Sentences = list[list[str]]


def read(path: Path) -> tuple[Sentences, Sentences]:
    """Read tokens and labels; IOB1 becomes IOB2."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[line.split() for line in block.splitlines() if not line.startswith("-DOCSTART-")] for block in blocks]
    tokens, labels = [], []
    for row in rows:
        before, names = "O", []
        for cells in row:
            label = cells[-1]
            begins = label[0] == "I" and (before == "O" or before[2:] != label[2:])
            names.append(f"B-{label[2:]}" if begins else label)
            before = label
        if names:
            tokens.append([cells[0] for cells in row])
            labels.append(names)
    return tokens, labels


def span_f1(folder: Path, **params: Any) -> float:
    tokens, labels = read(folder / "conll2003" / "eng.train")
    test, gold = read(folder / "conll2003" / "eng.testb")
    corpus = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": labels})
    return evaluate.spans(gold, CrfTagger(**params).fit(corpus, "gold").predict(test), mode="lenient").f1


@pytest.mark.data
def test_the_fast_mode_reaches_80_5(data_dir: Path) -> None:
    if not (data_dir / "conll2003" / "eng.train").exists():
        pytest.skip("CoNLL-2003 is licensed: put eng.train and eng.testb into LASCA_DATA/conll2003")
    assert span_f1(data_dir, templates="basic", optimiser="perceptron", max_iter=5) >= 0.805


@pytest.mark.data
def test_the_default_set_reaches_84_even_in_the_fast_mode(data_dir: Path) -> None:
    if not (data_dir / "conll2003" / "eng.train").exists():
        pytest.skip("CoNLL-2003 is licensed: put eng.train and eng.testb into LASCA_DATA/conll2003")
    assert span_f1(data_dir, optimiser="perceptron") >= 0.84


@pytest.mark.data
@pytest.mark.slow
def test_the_default_set_reaches_84(data_dir: Path) -> None:
    assert span_f1(data_dir) >= 0.84


@pytest.mark.data
@pytest.mark.slow
def test_likelihood_reaches_crfsuites_quality(data_dir: Path) -> None:
    assert span_f1(data_dir, templates="basic", l2=1.0, tol=1e-5) >= 0.81
