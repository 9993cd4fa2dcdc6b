"""Through the tools' own libraries and back: label-studio-sdk, argilla, datasets, spaCy, dkpro-cassis."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import label_studio
from lasca.formats.outcome import annotator_codes
from mutations import source

TOKENS = [["😊", "Ada", "Lovelace", "visited", "Rome"], ["Nothing", "here"]]
ANN = [["O", "B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
BEN = [["O", "B-PER", "B-PER", "O", "O"], None]
CONFIG = """<View><Labels name="label" toName="text"><Label value="PER"/><Label value="LOC"/></Labels>
<Text name="text" value="$text"/></View>"""


@pytest.fixture
def crowd() -> CrowdCorpus:
    return CrowdCorpus.from_sequences(TOKENS, {"ann": ANN, "ben": BEN}, sequence_ids=["1", "2"])


def said(corpus: CrowdCorpus, name: str) -> list[list[str | None]]:
    return corpus.label_names(annotator_codes(corpus, corpus.annotators.index(name)))


def is_the_crowd(corpus: CrowdCorpus) -> bool:
    words = [corpus.sequence(s) for s in range(corpus.n_sequences)]
    return words == TOKENS and said(corpus, "ann") == ANN and said(corpus, "ben") == [BEN[0], [None, None]]


@pytest.mark.filterwarnings("ignore")  # of the library itself
@pytest.mark.parametrize("format", ["JSON", "JSON_MIN", "CSV", "TSV"])
def test_label_studio_converts_our_tasks_and_we_read_what_it_writes(
    crowd: CrowdCorpus, tmp_path: Path, format: str
) -> None:
    converter = pytest.importorskip("label_studio_sdk.converter")
    lasca.write(crowd, tmp_path / "tasks.json", "label-studio")
    out = tmp_path / "out"
    converter.Converter(CONFIG, str(tmp_path)).convert(str(tmp_path / "tasks.json"), str(out), format, is_dir=False)
    assert is_the_crowd(lasca.read(out))


@pytest.mark.filterwarnings("ignore")
def test_label_studio_takes_our_tasks_and_predictions(crowd: CrowdCorpus, tmp_path: Path) -> None:
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface(CONFIG)
    lasca.write(crowd, tmp_path / "tasks.json", "label-studio")
    lasca.write(
        crowd, tmp_path / "truth.json", "label-studio", labels=annotator_codes(crowd, 0), proba=np.full((7, 4), 0.25)
    )
    for name in ("tasks.json", "truth.json"):
        for task in json.loads((tmp_path / name).read_text("utf-8")):
            assert interface.validate_task({"data": task["data"]})  # with annotations it calls itself wrongly
            assert all(interface.validate_annotation(a) for a in task.get("annotations", []))
            assert all(interface.validate_prediction(p) for p in task["predictions"])


@pytest.mark.filterwarnings("ignore")
def test_texts_that_stand_several_times_in_conll_are_told(crowd: CrowdCorpus, tmp_path: Path) -> None:
    """Label Studio's CoNLL holds a text once for every annotator and names none of them."""
    converter = pytest.importorskip("label_studio_sdk.converter")
    lasca.write(crowd, tmp_path / "tasks.json", "label-studio")
    out = tmp_path / "out"
    converter.Converter(CONFIG, str(tmp_path)).convert(
        str(tmp_path / "tasks.json"), str(out), "CONLL2003", is_dir=False
    )
    corpus = lasca.read(out / "result.conll")
    assert corpus.load_report.counts["texts that stand again, labelled differently"] == 1
    assert any("another export" in note for note in corpus.load_report.notes)


def records(rg: Any, users: list[uuid.UUID]) -> list[Any]:
    spans = [{"start": 2, "end": 14, "label": "PER"}, {"start": 23, "end": 27, "label": "LOC"}]
    ada, ben = users
    return [
        rg.Record(
            id="1",
            fields={"text": "😊 Ada Lovelace visited Rome"},
            metadata={"source": "wiki"},
            responses=[
                rg.Response("spans", spans, user_id=ada, status="submitted"),
                rg.Response("spans", [], user_id=ben, status="submitted"),
                rg.Response("tone", "good", user_id=ada, status="submitted"),
            ],
            suggestions=[
                rg.Suggestion("spans", spans, agent="m1", score=[0.75, 0.5]),
                rg.Suggestion("tone", "bad", agent="m1", score=0.8),
            ],
        ),
        rg.Record(
            id="2",
            fields={"text": "Nothing here"},
            responses=[
                rg.Response("spans", [], user_id=ada, status="submitted"),
                rg.Response("tone", "bad", user_id=ben, status="submitted"),
            ],
        ),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["to_json", "to_list", "datasets"])
def test_what_argilla_exports(tmp_path: Path, way: str) -> None:
    rg = pytest.importorskip("argilla")
    from argilla.records._io import GenericIO, JsonIO

    ada, ben = users = [uuid.UUID(int=1), uuid.UUID(int=2)]
    given: Any = records(rg, users)
    if way == "to_json":
        source: Any = JsonIO.to_json(given, tmp_path / "records.json")
    elif way == "to_list":
        source = GenericIO.to_list(given, flatten=True)
    else:
        source = pytest.importorskip("datasets").Dataset.from_list(GenericIO.to_list(given, flatten=True))
    corpus = lasca.read(source)
    assert said(corpus, str(ada)) == ANN
    assert said(corpus, str(ben)) == [["O"] * 5, [None, None]]
    assert said(corpus, "m1") == [ANN[0], [None, None]]
    assert (corpus.roles[2], corpus.metadata["source"][0]) == ("model", "wiki")
    assert corpus.load_report.counts["scores left out"] == 2
    assert corpus.load_report.counts["labels of whole documents left out"] == 3
    soft = lasca.read(source, scores="soft")
    assert soft.soft is not None
    assert soft.soft.token.tolist() == [1, 2, 4]
    assert soft.soft.proba.max(axis=1).tolist() == [0.75, 0.75, 0.5]
    tones = lasca.read(source, unit="document", scores="soft")
    assert (tones.n_tokens, tones.labels) == (2, ("bad", "good"))
    assert tones.soft is not None
    assert np.allclose(tones.soft.proba, [[0.8, 0.2]])
    drafts = [note for note in corpus.load_report.notes if "drafts" in note]
    assert bool(drafts) == (way == "to_json")


def test_scores_of_label_studio_are_counted_or_soft() -> None:
    def result(score: float | None) -> dict[str, Any]:
        value = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
        plain = {"from_name": "label", "to_name": "text", "type": "labels", "value": value}
        return plain if score is None else plain | {"score": score}

    def task(score: float | None) -> Any:
        entries = {
            "annotations": [{"completed_by": 1, "result": [result(None)]}],
            "predictions": [{"model_version": "m", "score": 0.9, "result": [result(score)]}],
        }
        return [{"id": 1, "data": {"text": "Ada came"}, **entries}]

    def read(score: float | None, **options: Any) -> CrowdCorpus:
        return label_studio.read(source("x.json", json.dumps(task(score)).encode()), **options)

    plain = read(0.6)
    assert plain.soft is None
    assert plain.load_report.counts == {"scores of whole predictions": 1, "scores left out": 1}
    assert any("scores=soft" in note for note in plain.load_report.notes)
    soft = read(0.6, scores="soft")
    assert soft.soft is not None
    assert np.allclose(soft.soft.proba, [[0.6, 0.4]])  # the rest for the only other label, O
    assert read(None, scores="soft").soft is None
    with pytest.raises(FormatError, match=r"a score must lie in 0\.\.1 .*got: 95"):
        read(95, scores="soft")
