"""What is not a corpus, or not labels, gets one clear error: in every truth model, every tagger, run and write."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lasca
from lasca import compare
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, FormatError, LascaError, ModelError
from lasca.tagger import CrfTagger, HmmTagger
from lasca.truth import model_class, model_names

FRAME = pd.DataFrame({"sequence": ["s", "s"], "position": [0, 1], "annotator": ["a", "b"], "label": ["X", "Y"]})
NO_CORPUS = [FRAME, "x.json", Path("x.json"), None, [["X"]], np.zeros((2, 2))]


@pytest.mark.parametrize("name", model_names())
def test_truth_models_take_a_corpus(name: str) -> None:
    for given in NO_CORPUS:
        with pytest.raises(CorpusError, match=r"takes a CrowdCorpus .* Read it first: corpus = lasca\.read"):
            model_class(name)().fit(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("tagger", [CrfTagger, HmmTagger])
def test_taggers_take_a_corpus_and_a_truth(tagger: Any) -> None:
    corpus = lasca.read(FRAME)
    for given in NO_CORPUS:
        with pytest.raises(CorpusError, match="takes a CrowdCorpus"):
            tagger().fit(given, "gold")
        with pytest.raises(LascaError, match="a Truth or the name of a gold"):
            tagger().fit(corpus, given)


def test_run_compare_and_write_take_a_corpus(tmp_path: Path) -> None:
    for call in (lasca.run, compare, lambda given: lasca.write(given, tmp_path / "x", "conll")):
        with pytest.raises(CorpusError, match=r"takes a CrowdCorpus \(got: DataFrame\)\. Read it first"):
            call(FRAME)
    layers = {"PER": lasca.read(FRAME)}
    with pytest.raises(CorpusError, match=r"several corpora: give one of them, such as \['PER'\]"):
        model_class("mv")().fit(layers)  # type: ignore[arg-type]


def test_labels_that_are_nan() -> None:
    with pytest.raises(CorpusError, match=r"no string \(got: nan\)\. Use None for a missing label"):
        CrowdCorpus.from_sequences([["a", "b"]], {"x": [["A", float("nan")]]})  # type: ignore[list-item]
    arrays = {"tokens": ["a"], "offsets": [0, 1], "labels": ["A"], "annotators": ["x"]}
    votes = {"annotation_token": [0], "annotation_annotator": [0], "annotation_label": [np.nan]}
    with pytest.raises(CorpusError, match="whole numbers"):
        CrowdCorpus.from_codes(**arrays, **votes, sequence_ids=["s"])
    gaps = lasca.read(FRAME.assign(label=["X", np.nan]))
    assert (gaps.labels, gaps.load_report.counts) == (("X",), {"rows without label": 1})
    texts = lasca.read(FRAME.assign(label=["X", "nan"]))
    assert texts.labels == ("X",)
    assert texts.load_report.counts["labels nan, taken as missing"] == 1
    with pytest.raises(FormatError, match=r"values of several kinds.*astype"):
        lasca.read(FRAME.assign(label=["X", 2.0]))


def test_free_text_is_no_label(tmp_path: Path) -> None:
    """4,576 labels on 2,000 tokens took 124 s and 4 GB in version 0.1.0."""
    rows = [f"s{k // 60},{k // 3 % 20},a{k % 3},word {k % 4576}" for k in range(6000)]
    path = tmp_path / "free.csv"
    path.write_text("sequence,position,annotator,label\n" + "\n".join(rows) + "\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FormatError, match=r"free text, not like labels: there are 4,576 .* for 2,000 tokens"):
        lasca.read(path)
    said = [[f"word {(3 * i + a) % 4576}" for i in range(2000)] for a in range(3)]
    corpus = CrowdCorpus.from_sequences([["_"] * 2000], {f"a{a}": [said[a]] for a in range(3)})
    with pytest.raises(ModelError, match="looks like free text"):
        model_class("ds")().fit(corpus)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_tables_that_fit_no_memory() -> None:
    names = [f"L{k}" for k in range(6000)]
    corpus = CrowdCorpus.from_sequences(
        [["_"] * 24_000], {f"a{a}": [[names[(k + a) % 6000] for k in range(24_000)]] for a in range(20)}
    )
    with pytest.raises(ModelError, match="6,000 labels and 20 annotators need tables of 5 GiB"):
        model_class("mv")().fit(corpus)
