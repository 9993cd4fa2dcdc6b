"""Exports as other versions and other people write them: read right, or refused by what was found in them.

No file is recognised by its quirks: each case changes names, labels, the order of keys, or how the file is written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.errors import FormatError
from lasca.formats.outcome import annotator_codes

TEXT = "Ada met Bob in Rome"
WORDS = TEXT.split()
PER = ["B-PER", "O", "O", "O", "O"]
NONE = ["O"] * 5


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def columns(*cells: list[str], head: str = "", between: str = "\t") -> str:
    block = "\n".join(between.join(row) for row in zip(*cells))
    return f"{head}{block}\n\n{block}\n"


def task(*results: dict[str, Any], key: str = "annotations", **more: Any) -> dict[str, Any]:
    return {key: [{"result": list(results), "completed_by": 1, **more}], "data": {"body": TEXT}, "id": 4}


SPAN = {"value": {"labels": ["PER"], "text": "Ada", "end": 3, "start": 0}, "type": "labels", "to_name": "t"}
ROW = {"text": TEXT, "_task_hash": 3, "answer": "accept", "_input_hash": 1}
MARK = {"label": "PER", "token_end": 0, "end": 3, "start": 0, "token_start": 0}
NER = ["B-PER", "O", "O", "O", "O"]
BEN = ["B-PER", "O", "B-PER", "O", "O"]
POS = ["NNP", "VBD", "NNP", "IN", "NNP"]
CHUNK = ["B-NP", "B-VP", "I-VP", "B-PP", "I-PP"]
IDS = ["1", "2", "3", "4", "5"]
TSV = "#FORMAT=WebAnno TSV 3.2\n#T_SP=x.Own|value\n{more}\n\n#Text=Ada ran\n"
TSV += "1-1\t0-3\tAda\tPER\t{a}\n1-2\t4-7\tran\t_\t{b}\n"
LONG = "sequence,position,token,annotator,label\ns,0,Ada,ann,B-PER\ns,1,met,ann,O\n"

READ: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, list[list[str | None]]]]] = {
    # files, options, what annotators (or "gold NAME") said
    "label studio, old": ({"x.json": json.dumps([task(SPAN, key="completions")])}, {}, {"1": [PER]}),
    "label studio, one task": ({"x.json": json.dumps(task(SPAN))}, {}, {"1": [PER]}),
    "label studio, utf-16": ({"x.json": json.dumps([task(SPAN)]).encode("utf-16")}, {}, {"1": [PER]}),
    "label studio, json-min of choices": (
        {"x.json": json.dumps([{"tone": "good", "text": TEXT, "annotator": 1, "annotation_id": 2, "id": 1}])},
        {"unit": "document", "control": "tone"},
        {"1": [["good"]]},
    ),
    "doccano, version 1": ({"ann.jsonl": lines({"labels": [[0, 3, "PER"]], "text": TEXT})}, {}, {"ann": [PER]}),
    "doccano, start and end": (
        {"ann.jsonl": lines({"entities": [{"end": 3, "label": "PER", "start": 0}], "text": TEXT})},
        {},
        {"ann": [PER]},
    ),
    "doccano, blank lines and CR LF": (
        {"ann.jsonl": (lines({"label": [[0, 3, "PER"]], "text": TEXT}) + "\n\n").replace("\n", "\r\n")},
        {},
        {"ann": [PER]},
    ),
    "label studio, in an object": ({"x.json": json.dumps({"tasks": [task(SPAN)]})}, {}, {"1": [PER]}),
    "Argilla 1": (
        {"x.jsonl": lines({"prediction": None, "text": TEXT, "annotation": "a", "annotation_agent": "b"})},
        {},
        {"b": [["a"]]},
    ),
    "doccano, a label": ({"ann.jsonl": lines({"label": "good", "text": TEXT, "id": 1})}, {}, {"ann": [["good"]]}),
    "classification with annotators": (
        {"x.jsonl": lines(*({"label": v, "annotator": a, "text": TEXT} for a, v in (("ann", "good"), ("ben", "bad"))))},
        {},
        {"ann": [["good"]], "ben": [["bad"]]},
    ),
    "prodigy, sessions": (
        {"x.jsonl": lines(*({**ROW, "spans": s, "_session_id": a} for a, s in (("ann", [MARK]), ("ben", []))))},
        {},
        {"ann": [PER], "ben": [NONE]},
    ),
    "brat, pieces": (
        {"ann/d.txt": TEXT, "ann/d.ann": "T1\tPER 0 3;8 11\tAda Bob\n"},
        {"discontinuous": "parts"},
        {"ann": [["B-PER", "O", "B-PER", "O", "O"]]},
    ),
    "webanno, chains": (
        {"ann.tsv": TSV.format(more="#T_CH=x.Link|a|b\n", a="*->1-1\tname[1]\t", b="_\t_\t")},
        {},
        {"annotator": [["B-PER", "O"]]},
    ),
    "webanno, relations": (
        {"ann.tsv": TSV.format(more="#T_RL=x.Rel|value|BT_x.Own\n", a="is\t1-2\t", b="_\t_\t")},
        {},
        {"annotator": [["B-PER", "O"]]},
    ),
    "two columns": ({"x.txt": columns(WORDS, NER)}, {}, {"gold gold": [NER, NER]}),
    "tags first": ({"x.txt": columns(NER, WORDS)}, {}, {"gold gold": [NER, NER]}),
    "three columns, layers": ({"x.txt": columns(WORDS, POS, NER, between=" ")}, {}, {"gold gold": [NER, NER]}),
    "three columns, annotators": ({"x.txt": columns(WORDS, NER, BEN)}, {}, {"1": [NER, NER], "2": [BEN, BEN]}),
    "four columns": ({"x.txt": columns(WORDS, POS, CHUNK, NER)}, {}, {"gold gold": [NER, NER]}),
    "numbers, tokens, tags": ({"x.tsv": columns(IDS, WORDS, NER, head="#id=1\n")}, {}, {"gold gold": [NER, NER]}),
    "germeval": (
        {"x.tsv": columns(IDS, WORDS, NER, BEN, head="#\thttp://x [2009]\n")},
        {"column": 3},
        {"gold gold": [NER, NER]},
    ),
    "numbers from 0": (
        {"x.conll": columns([str(i) for i in range(len(WORDS))], WORDS, ["_"] * len(WORDS), NER)},
        {},
        {"gold gold": [NER, NER]},
    ),
    "long table, utf-16": ({"x.csv": LONG.encode("utf-16")}, {}, {"ann": [["B-PER", "O"]]}),
    "long table, semicolons": ({"x.csv": "\ufeff" + LONG.replace(",", ";")}, {}, {"ann": [["B-PER", "O"]]}),
    "table of texts": (
        {"x.csv": f"text,annotator,label\n{TEXT},ann,good\n{TEXT},ben,bad\n"},
        {},
        {"ann": [["good"]], "ben": [["bad"]]},
    ),
}

REFUSED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "label studio, choices in json-min": (
        {"x.json": json.dumps([{"tone": "good", "text": TEXT, "annotator": 1, "annotation_id": 2, "id": 1}])},
        ("tone: good", "-r unit=document -r control=tone"),
    ),
    "a comma too many": ({"x.json": json.dumps([task(SPAN)])[:-1] + ",]"}, ("comma behind the last object",)),
    "commas between lines": (
        {"x.jsonl": lines({"label": [[0, 3, "PER"]], "text": TEXT}).replace("}\n", "},\n") * 2},
        ("commas between JSON objects",),
    ),
    "written answers": (
        {"x.jsonl": lines({"label": ["Ada traf den Bob", "Ada hat Bob getroffen"], "text": TEXT})},
        ("written answers, not like labels",),
    ),
    "LightTag without examples": (
        {"x.json": json.dumps({"schema": {}, "examples": []})},
        ("no sequence in this lighttag export",),
    ),
    "Datasaur": ({"x": json.dumps({"labelSets": [], "sentences": [{"tokens": ["a"]}]})}, ("export of Datasaur",)),
    "PubAnnotation": ({"x.json": json.dumps({"denotations": [], "text": TEXT})}, ("export of PubAnnotation",)),
    "BioC in JSON": ({"x.json": json.dumps({"documents": [{"id": 1}], "source": "x"})}, ("export of BioC",)),
    "BioC in XML": ({"x.xml": "<?xml version='1.0'?>\n<collection>\n<source>x</source>"}, ("export of BioC",)),
    "PubTator": ({"x.txt": "77|t|Ada met Bob\n77|a|in Rome\n77\t0\t3\tAda\tPER\n"}, ("export of PubTator",)),
    "SQuAD": (
        {"x.json": json.dumps([{"title": "a", "paragraphs": [{"context": TEXT, "qas": []}]}])},
        ("export of SQuAD",),
    ),
    "Rasa in JSON": ({"x.json": json.dumps({"rasa_nlu_data": {"common_examples": []}})}, ("export of Rasa",)),
    "Rasa in YAML": ({"x.yml": "nlu:\n- intent: greet\n  examples: |\n    - hey [Ada](who)\n"}, ("export of Rasa",)),
    "boxes in images": (
        {"x.jsonl": lines({"id": 1, "filename": "a.jpg", "bbox": [{"x": 1, "y": 2, "label": "a"}]})},
        ("regions of images", "labels of texts"),
    ),
    "objects inside an object": (
        {"x.json": json.dumps({"items": [{"body": TEXT, "ents": []}]})},
        ("the keys items (under items: body, ents)",),
    ),
    "Kili": ({"x.json": json.dumps([{"labels": [], "externalId": "1", "content": ""}])}, ("export of Kili",)),
    "brat without text": ({"d.ann": "T1\tPER 0 3\tAda\n"}, ("annotations of brat without their text",)),
    "CoNLL-2012": (
        {"x.conll": "#begin document (a); part 000\na 0 0 Ada NNP (PER)\na 0 1 ran VBD *\n\n#end document\n"},
        ("CoNLL-2012",),
    ),
    "a table of spans": (
        {"x.csv": f"doc,text,start,end,kind\n1,{TEXT},0,3,PER\n"},
        ("a table with the columns doc, text, start, end, kind", "Bring it into"),
    ),
    "five columns": ({"x.txt": columns(IDS, WORDS, WORDS, POS, NER)}, ("hold different things", "column=5")),
}


def written(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder if len(files) > 1 else folder / next(iter(files))


@pytest.mark.parametrize("name", READ)
def test_a_variant_is_read(tmp_path: Path, name: str) -> None:
    files, options, expected = READ[name]
    corpus = lasca.read(written(tmp_path, files), **options)
    found = {a: corpus.label_names(annotator_codes(corpus, i)) for i, a in enumerate(corpus.annotators)}
    found |= {f"gold {g}": corpus.label_names(codes) for g, codes in corpus.golds.items()}
    assert found == expected
    tokens = corpus.sequence(0)
    assert tokens in (WORDS, ["Ada", "ran"], ["Ada", "met"], [TEXT])


@pytest.mark.parametrize("name", REFUSED)
def test_a_variant_is_refused_by_what_it_holds(tmp_path: Path, name: str) -> None:
    files, says = REFUSED[name]
    with pytest.raises(FormatError) as caught:
        lasca.read(written(tmp_path, files))
    for words in says:
        assert words in str(caught.value)
