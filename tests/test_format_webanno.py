"""WebAnno TSV 3: layers, stacked and partial annotations, curators, layouts of folders."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats import webanno
from mutations import FEW, MANY, assert_only_lasca_errors, assert_only_lasca_errors_in_files, samples, source, sources

NE = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value"
TEXT = "😊 Ada Lovelace visited New York ."
OFFSETS = [
    ("0-2", "😊"), ("3-6", "Ada"), ("7-15", "Lovelace"), ("16-23", "visited"), ("24-27", "New"),
    ("28-32", "York"), ("33-34", "."),
]  # fmt: skip
BOTH = ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
CELLS = ["_", "PER[1]", "PER[1]", "_", "LOC[2]", "LOC[2]", "_"]


def tsv(cells: list[str] = CELLS, *, second: bool = False, extra: dict[int, list[str]] | None = None) -> bytes:
    """Make a document; `extra[k]` are rows behind token k."""
    lines = ["#FORMAT=WebAnno TSV 3.3", NE, "", "", f"#Text={TEXT}"]
    for k, (offsets, token) in enumerate(OFFSETS):
        value = cells[k]
        lines.append(f"1-{k + 1}\t{offsets}\t{token}\t{'_' if value == '_' else '*'}\t{value}\t")
        lines += (extra or {}).get(k, [])
    if second:
        lines += ["", "#Text=The end", "2-1\t36-39\tThe\t_\t_\t", "2-2\t40-43\tend\t_\t_\t"]
    return ("\n".join(lines) + "\n").encode()


def read(files: dict[str, bytes], **options: Any) -> CrowdCorpus:
    return webanno.read(sources(files), **options)


def table(corpus: CrowdCorpus) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for entry in corpus.to_table().to_pylist():
        found.setdefault(entry["annotator"], {}).setdefault(entry["sequence"], []).append(entry["label"])
    return found


def one(cells: list[str], **options: Any) -> list[str]:
    extra = options.pop("extra", None)
    return table(read({"doc1/ada.tsv": tsv(cells, extra=extra)}, **options))["ada"]["doc1/1"]


def test_the_sample_of_the_docstring() -> None:
    (sample,) = samples(webanno)
    files = source("doc1.txt/ada.tsv", sample.encode())
    assert webanno.sniff(files) == 1.0
    corpus = webanno.read(files)
    assert table(corpus) == {"ada": {"doc1.txt/1": BOTH}}
    assert corpus.metadata["text"][0] == TEXT
    assert corpus.metadata["document"][0] == "doc1.txt"
    assert corpus.token_chars is not None
    assert [TEXT[a:b] for a, b in corpus.token_chars] == [token for _, token in OFFSETS]


def test_sentences_are_sequences_and_the_curator_is_a_gold() -> None:
    files = {
        "export/annotation/doc1.txt/ada.tsv": tsv(second=True),
        "export/annotation/doc1.txt/bob.tsv": tsv(["_"] * 7, second=True),
        "export/annotation/doc1.txt/INITIAL_CAS.tsv": tsv(["_"] * 7, second=True),
        "export/curation/doc1.txt/CURATION_USER.tsv": tsv(second=True),
        "export/exportedproject.json": b"{}",
    }
    corpus = read(files)
    assert list(corpus.sequence_ids) == ["doc1.txt/1", "doc1.txt/2"]
    assert corpus.annotators == ("ada", "bob")
    assert corpus.label_names(corpus.golds["curation"]) == [BOTH, ["O", "O"]]
    assert corpus.load_report.counts["initial documents"] == 1
    assert corpus.load_report.counts["other files"] == 1


STATES = {"FINISHED": "O", "IN_PROGRESS": None, "INPROGRESS": None, "IGNORE": None, "NEW": None}


@pytest.mark.parametrize("state", STATES)
def test_what_was_not_done_in_a_project_is_missing(state: str) -> None:
    done = {"name": "doc1.txt", "user": "bob", "state": state}
    files = {"annotation/doc1.txt/ada.tsv": tsv(), "annotation/doc1.txt/bob.tsv": tsv(["_"] * 7)}
    files |= {"curation/doc1.txt/CURATION_USER.tsv": tsv()}
    curated = [{"name": "doc1.txt", "state": "CURATION_IN_PROGRESS"}]
    project = {"annotation_documents": [done, {**done, "user": "ada"}], "source_documents": curated}
    corpus = read({**files, "exportedproject12.json": json.dumps(project).encode()})
    assert table(corpus).get("bob", {}).get("doc1.txt/1", [None])[0] == STATES[state]
    assert ("ada" in table(corpus)) == (state not in ("NEW", "IGNORE"))  # what is in work is a vote, and is counted
    begun = 1 + (state in ("IN_PROGRESS", "INPROGRESS"))
    assert corpus.load_report.counts["files in work, read as they are"] == begun
    assert set(corpus.golds) == {"curation"}


def test_layouts_of_folders() -> None:
    other = tsv().replace(b"visited", b"toured!")
    by_document = {"d1/ada.tsv": tsv(), "d1/bob.tsv": tsv(), "d2/ada.tsv": other, "d2/bob.tsv": other}
    by_annotator = {"ada/d1.tsv": tsv(), "bob/d1.tsv": tsv(), "ada/d2.tsv": other, "bob/d2.tsv": other}
    corpus = read(by_document)
    assert corpus.annotators == ("ada", "bob")
    assert read(by_annotator) == corpus
    single = {"ada/d1.tsv": tsv(), "bob/d1.tsv": tsv()}
    assert read(single).annotators == ("ada", "bob")
    assert read(single, layout="document/annotator").annotators == ("d1",)
    assert read({"ada.tsv": tsv(), "bob.tsv": tsv()}).annotators == ("ada", "bob")
    assert read({"d1.tsv": tsv(), "d2.tsv": other}).annotators == ("annotator",)
    assert list(read({"d1.tsv": tsv()}).sequence_ids) == ["d1/1"]
    with pytest.raises(ParameterError, match="layout"):
        read(single, layout="maybe")


def test_values_without_ids_unnamed_escaped_and_stacked() -> None:
    assert one(["_", "PER", "PER", "_", "_", "_", "_"])[1:3] == ["B-PER", "B-PER"]
    unnamed = one(["_", "*", "_", "_", "*[3]", "*[3]", "_"])
    assert unnamed == ["O", "B-*", "O", "O", "B-*", "I-*", "O"]
    assert one(["_", "A\\|B\\_C", "_", "_", "_", "_", "_"])[1] == "B-A|B_C"
    stacked = ["_", "PER[1]", "PER[1]|NAME[2]", "_", "_", "_", "_"]
    with pytest.raises(FormatError, match=r"doc1/ada.tsv:8.*overlap|two spans overlap"):
        one(stacked)
    assert one(stacked, overlap="longest")[1:3] == ["B-PER", "I-PER"]
    with pytest.raises(FormatError, match="two labels"):
        one(["_", "PER[1]", "LOC[1]", "_", "_", "_", "_"])


def test_parts_of_tokens() -> None:
    extra = {0: ["1-1.1\t0-2\t😊\t_\t_\t"], 2: ["1-3.1\t7-11\tLove\t*\tX\t"]}
    cells = ["_"] * 7
    assert one(cells, extra=extra)[2] == "B-X"
    assert one(cells, extra=extra, partial="shrink")[2] == "O"
    later = {3: ["1-4.1\t20-23\tted\t*\tX\t"]}  # the end of a word
    assert one(cells, extra=later)[:5] == ["O", "O", "O", "B-X", "O"]
    with pytest.raises(FormatError, match="cuts through"):
        one(cells, extra=extra, partial="error")
    with pytest.raises(FormatError, match="part of a token lies outside"):
        one(cells, extra={0: ["1-1.1\t0-1\t?\t*\tX\t"]})  # half an emoji


def test_of_a_document_in_two_formats_the_tsv_is_read() -> None:
    corpus = read({"doc1/ada.xmi": XMI.encode(), "doc1/ada.tsv": tsv()})
    assert list(corpus.tokens) == [token for _, token in OFFSETS]
    assert corpus.load_report.counts["documents in a second format"] == 1


def test_relations_alone_are_refused_with_how_many_there_are() -> None:
    lines = [line for line in XMI.splitlines() if "own:Place" not in line]
    bare = "\n".join(lines).replace("<own:Tie", '<seg:Sentence xmi:id="2" sofa="1" begin="0" end="19"/><own:Tie')
    with pytest.raises(FormatError, match=r"no layer of spans.*relations: 2"):
        read({"doc1/ada.xmi": bare.encode(), "doc2/ada.xmi": bare.encode()}, feature="value")


def test_layers_and_features() -> None:
    pos = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue|coarseValue"
    rel = "#T_RL=x.Dependency|DependencyType|BT_x.POS"
    head = f"#FORMAT=WebAnno TSV 3.3\n{pos}\n{rel}\n#T_SP=custom.Emotion|strength|kind\n\n\n#Text=Ada ran\n"
    data = (head + "1-1\t0-3\tAda\tNE\tPROPN\t_\t_\t_\t_\t\n1-2\t4-7\tran\tVVFIN\tVERB\tsb\t1-1\t2\tjoy\t\n").encode()
    files = {"d/ada.tsv": data}
    with pytest.raises(FormatError, match="which layer"):
        read(files)
    assert table(read(files, layer="POS")) == {"ada": {"d/1": ["NE", "VVFIN"]}}
    assert table(read(files, layer="POS", feature="coarseValue")) == {"ada": {"d/1": ["PROPN", "VERB"]}}
    with pytest.raises(FormatError, match="which feature"):
        read(files, layer="Emotion")
    assert table(read(files, layer="custom.Emotion", feature="kind")) == {"ada": {"d/1": ["O", "B-joy"]}}
    for options in ({"layer": "X"}, {"layer": "POS", "feature": "x"}):
        with pytest.raises(FormatError, match="there is no"):
            read(files, **options)


def test_a_layer_without_features_marks_and_names_nothing() -> None:
    data = b"#FORMAT=WebAnno TSV 3.3\n#T_SP=x.Mark\n\n\n#Text=Ada ran\n1-1\t0-3\tAda\t*\t\n1-2\t4-7\tran\t_\t\n"
    corpus = read({"d/ada.tsv": data})
    assert any("x.Mark, feature (none)" in note for note in corpus.load_report.notes)
    assert [label[:1] for label in table(corpus)["ada"]["d/1"]] == ["B", "O"]


def test_a_file_without_the_layer_is_all_o() -> None:
    bare = b"#FORMAT=WebAnno TSV 3.3\n\n\n#Text=Ada ran\n1-1\t0-3\tAda\t\n1-2\t4-7\tran\t\n"
    full = (
        f"#FORMAT=WebAnno TSV 3.3\n{NE}\n\n\n#Text=Ada ran\n1-1\t0-3\tAda\t*\tPER\t\n1-2\t4-7\tran\t_\t_\t\n"
    ).encode()
    corpus = read({"d/ada.tsv": full, "d/bob.tsv": bare})
    assert table(corpus) == {"ada": {"d/1": ["B-PER", "O"]}, "bob": {"d/1": ["O", "O"]}}


def test_line_ends_lines_of_text_and_tokens_that_are_not_in_it() -> None:
    windows = read({"d/a.tsv": tsv().replace(b"\n", b"\r\n")})
    assert table(windows)["a"]["d/1"] == BOTH
    split = tsv().replace(b"#Text=" + TEXT.encode(), "#Text=😊 Ada\n#Text=Lovelace visited New York .".encode())
    corpus = read({"d/a.tsv": split})
    assert corpus.metadata["text"][0] == "😊 Ada\nLovelace visited New York ."
    odd = read({"d/a.tsv": tsv().replace(b"#Text=", b"#Text=!!")})
    assert odd.metadata["text"][0] == TEXT
    assert table(odd)["a"]["d/1"] == BOTH


def test_errors_name_file_and_line() -> None:
    for old, new, match in [
        (b"#FORMAT=WebAnno TSV 3.3", b"#FORMAT=WebAnno TSV 2", r":1.*must begin"),
        (b"1-2\t3-6", b"1-2 3-6", r":7.*a row must read"),
        (b"3-6", b"6-3", r":7.*ends before"),
        (b"Ada\t*\t", b"Ada\t", r":7.*1 cells of annotations where the header names 2"),
    ]:
        with pytest.raises(FormatError, match="doc1/ada.tsv" + match):
            read({"doc1/ada.tsv": tsv().replace(old, new)})
    with pytest.raises(FormatError, match="another text"):
        read({"d/a.tsv": tsv(), "d/b.tsv": tsv().replace(b"visited", b"invited")}, layout="document/annotator")


VALID = {
    "doc1.txt/ada.tsv": tsv(second=True, extra={2: ["1-3.1\t7-11\tLove\t_\t_\t"]}),
    "doc1.txt/CURATION_USER.tsv": tsv(second=True),
    "doc2.txt/ada.tsv": tsv(["_"] * 7),
}


def attempt(files: dict[str, bytes]) -> None:
    webanno.sniff(sources(files))
    read(files)


def test_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors_in_files(attempt, VALID, max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors_in_files(attempt, VALID, max_examples=MANY)


XMI = """<?xml version="1.0"?><xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore"
 xmlns:seg="http:///my/segmentation.ecore" xmlns:own="http:///my/layers.ecore" xmi:version="2.0">
<own:Place xmi:id="9" sofa="1" begin="15" end="19" value="LOC"/><seg:Sentence xmi:id="2" sofa="1" begin="0" end="19"/>
<seg:Token xmi:id="3" sofa="1" begin="0" end="2"/><seg:Token xmi:id="4" sofa="1" begin="3" end="6"/>
<seg:Token xmi:id="5" sofa="1" begin="7" end="10"/><seg:Token xmi:id="6" sofa="1" begin="15" end="19"/>
<own:Tie xmi:id="8" sofa="1" begin="3" end="6" Governor="4" Dependent="5"/>
<cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="😊 Ada saw old Rome"/></xmi:XMI>
"""


def test_xmi_needs_no_type_system() -> None:
    files = source("ada.xmi", XMI.encode())
    assert webanno.sniff(files) == 1.0
    corpus = webanno.read(files)
    assert corpus.sequence(0) == ["😊", "Ada", "saw", "Rome"]
    assert corpus.labels == ("B-LOC", "O")
    assert corpus.load_report.counts["relations"] == 1
    with pytest.raises(FormatError, match="not XML"):
        webanno.read(source("ada.xmi", XMI.encode()[:-20]))
    with pytest.raises(FormatError, match="entities"):
        webanno.read(source("ada.xmi", XMI.replace("<xmi:XMI", "<!DOCTYPE x><xmi:XMI", 1).encode()))


@pytest.mark.parametrize("link", ['own:CorefLink xmi:id="10"', 'own:Coref xmi:id="10" next="9"'])
def test_links_of_chains_are_no_spans(link: str) -> None:
    """Known by their name or by what they hold."""
    chained = XMI.replace("<cas:Sofa", f'<{link} sofa="1" begin="3" end="6"/><cas:Sofa')
    corpus = webanno.read(source("ada.xmi", chained.encode()))
    assert (corpus.labels, corpus.load_report.counts["chains"]) == (("B-LOC", "O"), 1)


def test_a_span_over_two_sentences_is_split_and_counted() -> None:
    sentences = (
        '<seg:Sentence xmi:id="2" sofa="1" begin="0" end="10"/><seg:Sentence xmi:id="7" sofa="1" begin="11" end="19"/>'
    )
    two = XMI.replace('<seg:Sentence xmi:id="2" sofa="1" begin="0" end="19"/>', sentences).replace(
        'begin="15"', 'begin="7"', 1
    )
    corpus = webanno.read(source("ada.xmi", two.encode()))
    assert [row["label"] for row in corpus.to_table().to_pylist()] == ["O", "O", "B-LOC", "B-LOC"]
    assert corpus.load_report.counts["spans over several sentences, split"] == 1
    assert "spans over several sentences, split" not in webanno.read(source("ada.xmi", XMI.encode())).load_report.counts


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_xmi(max_examples: int) -> None:
    assert_only_lasca_errors(lambda b: webanno.read(source("ada.xmi", b)), XMI.encode(), max_examples=max_examples)


def test_curators_decide_and_do_not_vote() -> None:
    def sheet(label: str) -> bytes:
        head = "#FORMAT=WebAnno TSV 3.3\n#T_SP=x.Layer|value\n\n\n#Text=Ada saw\n"
        return f"{head}1-1\t0-3\tAda\t{label}\t\n1-2\t4-7\tsaw\t_\t\n".encode()

    files = {"d/ann.tsv": sheet("PER"), "d/Curator.tsv": sheet("ORG"), "d/ben.tsv": sheet("_")}
    corpus = webanno.read(sources(files))
    assert (corpus.annotators, list(corpus.golds)) == (("ann", "ben"), ["curation"])
    assert corpus.label_names(corpus.golds["curation"]) == [["B-ORG", "O"]]


def test_a_project_export_may_hold_zips_of_xmi(tmp_path: Path) -> None:
    def zipped(**members: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in members.items():
                archive.writestr(name.replace("__", "."), data)
        return stream.getvalue()

    with zipfile.ZipFile(tmp_path / "project.zip", "w") as archive:
        for user, label in (("ann", b"LOC"), ("ben", b"ORG")):
            inner = zipped(**{f"{user}__xmi": XMI.encode().replace(b"LOC", label), "TypeSystem__xml": b"<typeSystem/>"})
            archive.writestr(f"annotation/doc.txt/{user}.zip", inner)
        inner = zipped(CURATION_USER__xmi=XMI.encode())
        archive.writestr("curation/doc.txt/CURATION_USER.zip", inner)
        archive.writestr("annotation_ser/doc.txt/ann.ser", b"\xac\xed\x00\x05")
    corpus = lasca.read(tmp_path / "project.zip")
    assert (corpus.annotators, list(corpus.golds)) == (("ann", "ben"), ["curation"])
    assert list(corpus.sequence_ids) == ["doc.txt/1"]
    assert corpus.labels == ("B-LOC", "B-ORG", "O")


def test_features_are_found_by_name_in_each_file() -> None:
    """They were found by their place in the first file: other features were read as labels, or an IndexError came."""
    turned = tsv().replace(b"|identifier|value", b"|value|identifier")
    for k, cell in enumerate(CELLS):
        first, second = ("_" if cell == "_" else "*"), cell
        offsets, token = OFFSETS[k]
        row = f"1-{k + 1}\t{offsets}\t{token}\t"
        turned = turned.replace(f"{row}{first}\t{second}\t".encode(), f"{row}{second}\t{first}\t".encode())
    said = table(read({"doc1/ada.tsv": tsv(), "doc1/bob.tsv": turned}))
    assert said["ada"]["doc1/1"] == said["bob"]["doc1/1"] == BOTH
    fewer = turned.replace(b"|value|identifier", b"|identifier").replace(b"\t_\t_\t", b"\t_\t")
    fewer = b"\n".join(line.rsplit(b"\t", 2)[0] + b"\t" if b"[" in line else line for line in fewer.split(b"\n"))
    for names in (("ada", "bob"), ("bob", "ada")):  # whichever file comes first
        with pytest.raises(FormatError, match="NamedEntity has no feature 'value' in this file"):
            read({f"doc1/{name}.tsv": data for name, data in zip(names, (tsv(), fewer))})
