"""Real exports of annotation tools (LASCA_EXPORTS): each is read with these counts, or refused for this reason."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.align import label_spans
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaWarning


@dataclass(frozen=True)
class Read:
    """What a file (or folder, or several) must give."""

    path: str
    sequences: int
    annotators: tuple[str, ...] = ()
    golds: tuple[str, ...] = ()
    spans: int | None = None
    """The spans of all annotators together, or of the gold where there is no annotator."""
    options: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Refused:
    """What the message must say."""

    path: str
    says: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


LONGEST = {"overlap": "longest"}
WORKERS = (  # of the results without spans: file, items, workers
    (1, 9, "1 10 11 12 13 16 17 18 19 2 20 3 4 5 6 7 8 9"),
    (2, 7, "1 10 11 12 13 14 16 17 18 19 2 20 3 4 5 6 8"),
    (3, 5, "1 10 11 12 13 14 15 16 17 18 19 2 3 5 6 7 8 9"),
    (4, 2, "1 11 12 13 14 15 16 3 4 6 8"),
    (5, 6, "10 13 14 15 16 19 2 4 5 8"),
)
CASES: list[Read | Refused] = [
    # Label Studio
    Read(
        "label-studio/LEOKA_team_1.json",
        130,
        ("user7d428c@example.org", "user8f758c@example.org", "userb159e6@example.org"),
        ("gold",),
        options=LONGEST,
        counts={"annotations that are ground truth": 130, "repeated texts": 1},
        notes=("unit=document",),
    ),
    Refused("label-studio/LEOKA_team_1.json", ("two spans overlap", "overlap=longest", "task 97056351")),
    Read("label-studio/LEOKA_team_3.json", 130, ("user24188b@example.org", "usercbfaa5@example.org", "userf2af54@example.org"), ("gold",), options=LONGEST),
    Read("label-studio/LEOKA_team_1.json label-studio/LEOKA_team_3.json", 224, ("user24188b@example.org", "user7d428c@example.org", "user8f758c@example.org", "userb159e6@example.org", "usercbfaa5@example.org", "userf2af54@example.org"), ("gold",), options={**LONGEST, "link": "text"}),
    Refused("label-studio/sai_ann", ("annotator '1'", "annotator1.json", "annotator2.json", "20 texts in common", "annotator=file")),
    Read("label-studio/sai_ann", 20, ("annotator1", "annotator2"), options={"annotator": "file"}, tokens=493),
    Read("label-studio/sai_ann/annotator1.json", 20, ("1",)),
    Read("label-studio/sai_ann/annotator2.json", 20, ("1",)),
    Refused("label-studio/images/a1.json", ("no text", "labels of whole documents: 20", "unit=document")),
    Read("label-studio/images/a1.json", 20, ("1",), options={"unit": "document"}, tokens=20),
    Refused("label-studio/stt", ("annotator '1'", "annotator=file")),
    Read("label-studio/ls_uie.json", 121, ("unknown",), spans=319, options=LONGEST),
    Refused("label-studio/ls_three_tasks_two_gts.json", ("no span of text", "rectanglelabels: 10")),
    Read("label-studio/ls_2pred.json", 1, ("model_version_A", "model_version_B"), labels=("class_A", "class_B"), tokens=1, notes=("whole documents",)),
    Refused("label-studio/lssdk_test_export_csv_csv_test.json", ("no span of text", "rectanglelabels: 5")),
    Refused("label-studio/lssdk_test_export_json_min_data.json", ("no text", "polygonlabels: 1")),
    Refused("label-studio/lsed_classification_mixed.json", ("no text", "rectanglelabels: 2", "labels of whole documents: 2")),
    Refused("label-studio/lsed_classification_mixed_tasks.json", ("no text", "no annotations")),
    Read("label-studio/lsed_dialogue_analysis.json", 1, ("unknown",), labels=("Neutral answer",), counts={"results that are no spans of text (textarea)": 1}),
    Read("label-studio/lsed_dialogue_analysis_tasks.json", 1, ("model 1",), labels=("Neutral answer",)),
    Refused("label-studio/ls_randpred.json", ("timeserieslabels: 2",)),
    Refused("label-studio/lsed_html_document.json", ("globalOffsets", "/div[1]/table[1]/tbody[1]/tr[11]/td[3]/text()[1]")),
    Refused("label-studio/lsed_html_document_tasks.json", ("the text is HTML", "Take the markup off")),
    Read("label-studio/lsed_named_entity.json", 1, ("unknown",), spans=1),
    Read("label-studio/lsed_named_entity_tasks.json", 1, ("model 1",), spans=1),
    # Prodigy
    Read("prodigy/prodigy_drugs.jsonl", 500, ("prodigy_drugs",), spans=362),
    Read("prodigy/prodigy_rel.jsonl", 149, ("prodigy_rel",), spans=466, counts={"relations": 267}),
    Read("prodigy/spanruler.jsonl", 1521, ("ner_model", "original_annotations"), ("review",), counts={"reviewed lines": 1521, "lines with several versions": 659}),
    Read("prodigy/slovak/annotations_prod02.jsonl", 48, ("annotations_prod02",), counts={"blank tokens": 847}),
    # CoNLL
    Read("conll/jr_FIN3.txt", 303, (), ("gold",), tokens=13246, labels=("I-LOC", "I-MISC", "I-ORG", "I-PER", "O"), notes=("column 4",)),
    Read("conll/jr_FIN3.txt", 303, (), ("gold",), options={"column": 2}, notes=("column 2",)),
    Read("conll/ar.conllu", 14, (), ("gold",), tokens=396, notes=("column 4 (upos)",), counts={"lines that are no tokens (3-4 or 3.1)": 35}),
    Read("conll/ar.conllu", 14, (), ("gold",), tokens=396, options={"column": "deprel"}),
    Read("conll/jr_emerging.dev.conll", 1009, (), ("gold",), tokens=15733),
    Read("conll/slovak_dev.txt", 668, (), ("gold",), tokens=12995),
    Refused("inception/tsv2-example.tsv", ("columns of this file hold different things", "column=5", "5: B-LOC")),
    Refused("inception/tsv2-example.tsv", ("stacked", "B-ORGpart|B-ORG"), {"column": 5}),
    Read("inception/tsv2-example.tsv", 7, (), ("gold",), tokens=86, options={"column": 5, "overlap": "first"}),
    # doccano
    Read("doccano/doccano_sequence_labeling.jsonl", 3, ("doccano_sequence_labeling",), spans=4),
    Read("doccano/doccano_relation_extraction.jsonl", 1, ("doccano_relation_extraction",), spans=4, counts={"relations": 3}),
    Read("doccano/doccano_overlap.jsonl", 1, ("doccano_overlap",), counts={"repeated spans": 1}),
    Read("doccano/doccano_bsner.jsonl", 454, ("doccano_bsner",), spans=444),
    Read("doccano/doccano_xyj.jsonl", 36, ("doccano_xyj",), spans=435),
    Refused("doccano/doccano_cti.jsonl", ("two spans overlap", "Attacker 265183-265188", "overlap=layers")),
    Read("doccano/doccano_cti.jsonl", 1, ("doccano_cti",), options=LONGEST),
    Read("doccano/doccano_text_classification.jsonl", 3, ("doccano_text_classification",), labels=("negative", "positive"), tokens=3),
    Read("doccano/doccano_intent_detection.jsonl", 2, ("doccano_intent_detection",), spans=3, notes=("unit=document",), counts={"labels of whole documents left out": 2}),
    Read("doccano/doccano_intent_detection.jsonl", 2, ("doccano_intent_detection",), options={"unit": "document"}, labels=("airport", "flight")),
    # brat
    Read("brat/bratiaa/example-files", 7, ("Lisa", "Maria", "Max", "Peter"), spans=1567),
    Read("brat/bratiaa/data/agreement/agree-2", 2, ("ann1", "ann2")),
    Refused("brat/bratiaa", ("no document stands in two of them", "data (4)", "example-files (28)", "folders=")),
    Read("brat/NCBI-disease", 20, ("annotator",), spans=226, counts={"attributes": 226}),
    Refused("brat/CoNLL-ST_2002", ("no document stands in two of them", "esp (10)", "ned (10)")),
    Read("brat/CoNLL-ST_2002", 20, ("annotator",), options={"folders": "parts"}),
    Refused("brat/BioNLP-ST_2011_GE", ("two spans overlap", "overlap=layers")),
    # INCEpTION
    Read("inception/Export+Test+-+Curated+annotation+project_3_6_1.zip", 1, (), ("curation",), counts={"other files": 1, "annotators' files that are text alone": 1, "files that only INCEpTION uses (.ser, source, log)": 5}),
    Refused("inception/curation/relStackedTest", ("which feature holds the labels", "f1, f2")),
    Read("inception/curation/relStackedTest", 1, ("user1", "user2"), ("curation",), options={"feature": "f1", "overlap": "longest"}),
    Read("inception/curation/simpleRelGovDiffTest", 1, ("user1", "user2"), ("curation",), counts={"relations": 2}),
    Read("inception/curation/simpleRelNoDiffTest", 1, ("user1", "user2"), ("curation",)),
    Read("inception/curation/simpleSpanDiffIncompleteTest", 1, ("user1", "user2"), counts={"curators' files without the layer, no decision": 1}),
    Read("inception/curation/simpleSpanDiffNoLabelTest", 1, ("user1", "user2"), labels=("*", "O"), counts={"files without the layer, nothing marked": 1}),
    Read("inception/curation/simpleSpanDiffWithLabelStackingTest", 1, ("user1", "user2"), counts={"repeated spans": 2}),
    Read("inception/curation/simpleSpanNoDiffMultiFeatureTest", 1, ("user1", "user2"), ("curation",)),
    Read("inception/curation/simpleSpanNoDiffWithLabelTest", 1, ("user1", "user2"), ("curation",), labels=("NN", "O")),
    # MACE, spaCy, GATE, SageMaker, results without spans
    Read("mace/temporal.csv", 1, tuple(sorted(map(str, range(1, 77)))), tokens=462, notes=("items=true",)),
    Read("mace/temporal.csv", 462, tuple(sorted(map(str, range(1, 77)))), options={"items": True}),
    Read("mace/wsd.csv", 1, tuple(sorted(map(str, range(1, 35)))), tokens=177, notes=("items=true",)),
    Read("other/demo.spacy", 1, (), ("gold",), tokens=20),
    Read("other/spacy_ner_train.json", 2, (), ("gold",), spans=3),
    Refused("other/gate.bdocjs", ("GATE document", "gate.bdocjs")),
    Refused("other/gate.xml", ("GATE document", "gate.xml")),
    Refused("other/gt_legal.manifest", ("SageMaker", "refer to files", "groundtruth/custom", ".pdf")),
    *(Refused(f"other/load/platform_amt{k}.csv", ("Answer.* or OUTPUT:*", "unit=document")) for k in range(1, 6)),
    Refused("other/load/empty_rows.csv", ("Answer.* or OUTPUT:*", "unit=document")),
    *(Refused(f"other/load/platform_cf{k}.csv", ("Answer.* or OUTPUT:*", "unit=document")) for k in range(1, 6)),
    *(Refused(f"other/load/dir/file{k}.csv", ("Answer.* or OUTPUT:*", "unit=document")) for k in (1, 2)),
    *(
        Read(f"other/load/{name}.csv", n, tuple(f"W{w}" for w in who.split()), options={"unit": "document"})
        for name, n, who in (
            *((f"platform_{tool}{k}", n, who) for tool in ("amt", "cf") for k, n, who in WORKERS),
            ("empty_rows", 9, WORKERS[0][2]),
            ("dir/file1", 1, "1 2 3 4 5 6"),
            ("dir/file2", 1, "2 3 4 5 6 7"),
        )
    ),
    Read("label-studio/stt/annotator1.json", 20, ("1",), options={"partial": "split"}),
    Read("label-studio/stt/annotator2.json", 20, ("1",), options={"partial": "split"}),
    Read("label-studio/lsed_classification_mixed.json", 1, ("unknown",), options={"unit": "document", "control": "choices"}),
    Read("brat/BioNLP-ST_2011_GE", 20, ("annotator",), options=LONGEST),
    Read("label-studio/stt", 20, ("annotator1", "annotator2"), options={"annotator": "file", "partial": "split"}, counts={"tokens cut at the edges of spans": 3}),
    Refused("label-studio/stt/annotator1.json", ("share a token, though no character", "partial=split")),
    Refused("label-studio/stt/annotator2.json", ("share a token, though no character", "partial=split")),
]  # fmt: skip


def source(folder: Path, path: str) -> Any:
    found = [folder / name for name in path.split(" ")]
    return found if len(found) > 1 else found[0]


def n_spans(corpus: CrowdCorpus) -> int:
    """Count the spans of all annotators, or of the first gold, by the labels over tokens."""
    chars = [(i, i + 1) for i in range(corpus.n_tokens)]
    if not corpus.n_annotators:
        gold = next(iter(corpus.golds.values()))
        return sum(len(label_spans(row, chars)) for row in corpus.label_names(gold))
    total = 0
    for a in range(corpus.n_annotators):
        rows = corpus.label_names(lasca.formats.outcome.annotator_codes(corpus, a))
        total += sum(len(label_spans(row, chars)) for row in rows)
    return total


@pytest.mark.data
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{type(case).__name__}-{case.path}-{case.options or ''}")
def test_a_real_export(exports_dir: Path, case: Read | Refused) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LascaWarning)
        if isinstance(case, Refused):
            with pytest.raises(FormatError) as caught:
                lasca.read(source(exports_dir, case.path), **case.options)
            for words in case.says:
                assert words in str(caught.value)
            return
        corpus = lasca.read(source(exports_dir, case.path), **case.options)
    assert corpus.n_sequences == case.sequences
    assert corpus.annotators == case.annotators
    assert tuple(corpus.golds) == case.golds
    for kind, n in case.counts.items():
        assert corpus.load_report.counts.get(kind) == n
    for words in case.notes:
        assert any(words in note for note in corpus.load_report.notes)
    if case.labels is not None:
        assert corpus.labels == case.labels
    if case.tokens is not None:
        assert corpus.n_tokens == case.tokens
    if case.spans is not None:
        assert n_spans(corpus) == case.spans


@pytest.mark.data
def test_who_made_the_ground_truth_keeps_the_vote(exports_dir: Path) -> None:
    corpus = lasca.read(exports_dir / "label-studio" / "LEOKA_team_1.json", overlap="longest")
    sequences = [
        len({int(s) for s in corpus.token_sequence[corpus.annotation_token[corpus.annotation_annotator == a]]})
        for a in range(3)
    ]
    assert sequences == [130, 129, 130]


@pytest.mark.data
def test_a_review_holds_every_version(exports_dir: Path) -> None:
    corpus = lasca.read(exports_dir / "prodigy" / "spanruler.jsonl")
    names = {
        a: corpus.label_names(lasca.formats.outcome.annotator_codes(corpus, i)) for i, a in enumerate(corpus.annotators)
    }
    review = corpus.label_names(corpus.golds["review"])
    differ = sum(a != b for a, b in zip(names["ner_model"], names["original_annotations"]))
    chars = [(i, i + 1) for i in range(corpus.n_tokens)]
    assert sum(len(label_spans(row, chars)) for row in review) == 3179
    assert differ == 659


SUITE = "inception/tsv3-suite"
ASKED = {"layer": "SimpleSpan"}


@pytest.mark.data
def test_tsv_and_xmi_give_the_same_corpus(exports_dir: Path) -> None:
    same, refused = 0, 0
    for folder in sorted((exports_dir / SUITE).iterdir()):
        if not (folder / "reference.xmi").exists():
            continue
        for options in ({}, ASKED, {"overlap": "longest"}):
            got = []
            for name in ("reference.tsv", "reference.xmi"):
                try:
                    got.append(lasca.read(folder / name, **options))
                except FormatError as error:
                    got.append(error.what.split(":")[0])
            assert got[0] == got[1], (folder.name, options)
            same += isinstance(got[0], CrowdCorpus)
            refused += not isinstance(got[0], CrowdCorpus)
    assert same > 50
    assert refused > 10


@pytest.mark.data
def test_layers_lose_no_span(exports_dir: Path) -> None:
    folder = exports_dir / "brat" / "BioNLP-ST_2011_GE"
    raw = [line.split("\t") for path in folder.glob("*.ann") for line in path.read_text("utf-8").splitlines()]
    kinds = [cells[1].split(" ")[0] for cells in raw if cells[0].startswith("T")]
    for overlap in ("layers", "depth"):
        layers = lasca.read(folder, overlap=overlap)
        repeated = layers.load_report.counts.get("repeated spans", 0)
        assert sum(n_spans(corpus) for corpus in layers.values()) + repeated == len(kinds)
    assert set(lasca.read(folder, overlap="layers")) >= set(kinds)


@pytest.mark.data
def test_every_given_file_is_in_the_table_or_below_a_folder_of_it(exports_dir: Path) -> None:
    """No file is left out, and what single files of folders give is an answer as well: a corpus or one clear error."""
    told = [path for case in CASES for path in case.path.split(" ")]
    n_read = 0
    for path in sorted(exports_dir.rglob("*")):
        if not path.is_file() or path == exports_dir / "README.md":
            continue
        name = path.relative_to(exports_dir).as_posix()
        covered = any(name == known or name.startswith(known + "/") for known in (*told, SUITE))
        assert covered, name
        if path.stat().st_size > 300_000 or name in told:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LascaWarning)
            try:
                lasca.read(path)
                said = path.name
                n_read += 1
            except FormatError as error:
                said = str(error)
        assert path.name in said
    assert n_read > 50
