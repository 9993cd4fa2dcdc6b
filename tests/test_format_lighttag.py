"""LightTag: spans by whom they were made, and those who saw a text and marked nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import READERS, lighttag
from lasca.formats.choose import choose
from mutations import samples, source

TEXT = "Ada met Bob in Rome"


def span(start: int, end: int, tag: str, *who: str, **more: Any) -> dict[str, Any]:
    people = [{"annotator_id": 9, "annotator": name, "timestamp": "2020-07-26T20:42:03+00:00"} for name in who]
    return {"start": start, "end": end, "tag": tag, "value": TEXT[start:end], "annotated_by": people, **more}


def example(*spans: dict[str, Any], seen: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    seen_by = [{"annotator": name, "annotator_id": k} for k, name in enumerate(seen)]
    return {"content": TEXT, "annotations": list(spans), "seen_by": seen_by, "example_id": "e1", **more}


def load(*examples: dict[str, Any], **options: Any) -> CrowdCorpus:
    data = json.dumps({"schema": {"tags": []}, "id": "x", "examples": list(examples)}).encode()
    assert choose(READERS, source("job.json", data), "job.json") == "lighttag"
    return lighttag.read(source("job.json", data), **options)


def votes(corpus: CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], []).append(row["label"])
    return found


def test_the_sample_of_the_docstring() -> None:
    (sample,) = samples(lighttag)
    corpus = lighttag.read(source("x.json", sample.encode()))
    assert votes(corpus) == {"ann": ["B-PER", "O"], "ben": ["O", "O"]}
    assert list(corpus.metadata["source"]) == ["web"]


@pytest.mark.parametrize(("first", "second"), [("PER", "LOC"), ("a b", "c")])
def test_a_span_belongs_to_all_who_made_it(first: str, second: str) -> None:
    spans = [span(0, 3, first, "ann", "ben"), span(15, 19, second, "ben", reviewed=True, correct=True)]
    corpus = load(example(*spans, seen=("cy", "ann")))
    assert votes(corpus) == {
        "ann": [f"B-{first}", "O", "O", "O", "O"],
        "ben": [f"B-{first}", "O", "O", "O", f"B-{second}"],
        "cy": ["O"] * 5,
    }
    assert corpus.load_report.counts["judged by a reviewer"] == 1


def test_classifications_are_labels_of_documents() -> None:
    given = [{"classname": "good", "annotated_by": [{"annotator_id": 4}]}]
    corpus = load(example(seen=("ann",), classifications=given))
    assert votes(corpus) == {"4": ["good"]}
    both = load(example(span(0, 3, "PER", "ann"), classifications=given), unit="document")
    assert votes(both) == {"4": ["good"]}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"content": None}, "'content'"),
        ({"annotations": [3]}, "'annotations' must be a list"),
        ({"annotations": [{"start": 0, "end": 3}]}, r"job\.json \(0\)"),
        ({"seen_by": [{}]}, "an annotator"),
    ],
)
def test_messages(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load({**example(), **broken})


def test_exports_of_old_are_read() -> None:
    """As of Kaggle's Corona2.json: no schema, and who it was beside the spans of models."""

    def old(start: int, end: int, **who: Any) -> dict[str, Any]:
        return {"start": start, "end": end, "tag_name": "X", **who}

    given = [
        old(0, 3, human_annotations=[{"annotator_id": 1, "name": "ash"}], model_annotations=[]),
        old(4, 7, human_annotations=[], model_annotations=[{"model_id": 3}]),
    ]
    row = {"id": "e7", "content": "Ada ran", "metadata": {}, "annotations": given, "classifications": []}
    files = source("Corona2.json", json.dumps({"examples": [row]}).encode())
    assert lighttag.sniff(files) > 0.9
    corpus = lighttag.read(files)
    assert (corpus.sequence_ids, votes(corpus)) == (("e7",), {"ash": ["B-X", "O"]})
    assert corpus.load_report.counts["spans of models"] == 1


def test_spans_that_name_one_annotator_directly_are_theirs() -> None:
    spans = [{**span(0, 3, "PER"), "annotated_by": [], "annotator": name} for name in ("ann", "ben")]
    assert set(votes(load(example(*spans)))) == {"ann", "ben"}
