"""CoNLL, a folder per annotator: the sample, layouts, alignment, typed labels, hostile folders."""

from __future__ import annotations

import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats import READERS, conll_folder, read
from lasca.formats.base import files_of
from lasca.formats.choose import choose
from mutations import MANY, assert_only_lasca_errors_in_files, sources


def sample() -> dict[str, bytes]:
    """Return the folder that the docstring shows, column by column."""
    lines = (conll_folder.__doc__ or "").split("```")[1].strip("\n").split("\n")
    width = [0, 19, 38, 200]
    files: dict[str, bytes] = {}
    for a, b in pairwise(width):
        name, *rows = [line[a:b].strip() for line in lines]
        files[name] = "\n".join(["", *filter(None, rows), ""]).encode()
    return files


MTURK = {
    "root/val/ground_truth/d2.txt": b"\nIraqi O\n\nrests O\n",
    "root/val/ground_truth/d10.txt": "\n😊 O\nAda B-PER\n".encode(),
    "root/val/mturk_train_data/W1/d2.txt": b"\nIraq B-LOC\ni O\n\nrests O\n",
    "root/val/mturk_train_data/W2/d2.txt": b"Iraqi/LOC O\n\nrests O\n",
    "root/val/mturk_train_data/W2/d10.txt": "😊 O\nAda B-PER\n".encode(),
    "root/test/ground_truth/d1.txt": b"\nNew B-LOC\nYork I-LOC\n",
    "root/test/mturk_train_data/W1/d1.txt": b"NewYork B-LOC\n",
}


def load(files: dict[str, bytes], **options: object) -> CrowdCorpus:
    return conll_folder.read(sources(files), **options)  # type: ignore[arg-type]


def said(corpus: CrowdCorpus, name: str) -> dict[tuple[str, int], str]:
    return {(r["sequence"], r["position"]): r["label"] for r in corpus.to_table().to_pylist() if r["annotator"] == name}


def test_the_sample_of_the_docstring() -> None:
    assert sorted(sample()) == ["ann/d1.txt", "ben/d1.txt", "gold/d1.txt"]
    corpus = load(sample())
    assert corpus.sequence(0) == ["Ada", "visited", "Iraqi"]
    assert list(corpus.sequence_ids) == ["d1/0"]
    assert corpus.label_names(corpus.golds["gold"]) == [["B-PER", "O", "O"]]
    assert list(said(corpus, "ann").values()) == ["B-PER", "O", "O"]
    assert list(said(corpus, "ben").values()) == ["B-PER", "O", "O"]
    assert corpus.load_report.counts["files tokenised differently"] == 2
    assert corpus.load_report.counts["shrunk"] == 1
    assert list(said(load(sample(), partial="expand"), "ann").values()) == ["B-PER", "O", "B-LOC"]
    assert conll_folder.sniff(sources(sample())) > 0.8


def test_the_layout_of_mechanical_turk() -> None:
    corpus = load(MTURK)
    assert list(corpus.sequence_ids) == ["val/d10/0", "val/d2/0", "val/d2/1", "test/d1/0"]
    assert list(corpus.metadata["document"]) == ["d10", "d2", "d2", "d1"]
    assert list(corpus.metadata["folder"]) == ["val", "val", "val", "test"]
    assert corpus.annotators == ("W1", "W2")
    assert said(corpus, "W1") == {
        ("val/d2/0", 0): "O",
        ("val/d2/1", 0): "O",
        ("test/d1/0", 0): "B-LOC",
        ("test/d1/0", 1): "I-LOC",
    }
    counts = corpus.load_report.counts
    assert counts["documents"] == 3
    assert counts["annotator files"] == 4
    assert counts["files tokenised differently"] == 3
    assert counts["files aligned exactly"] == 4
    assert counts["typed labels"] == 1
    assert counts["typed labels on O"] == 1


def test_typed_labels_count_on_request() -> None:
    assert said(load(MTURK), "W2")["val/d2/0", 0] == "O"
    assert said(load(MTURK, typed_labels=True), "W2")["val/d2/0", 0] == "B-LOC"
    two = {
        "gold/d": b"New B-LOC\nYork I-LOC\nand O\nRome B-LOC\n",
        "w/d": b"New/LOC O\nYork/LOC O\nand O\nRome/B-LOC O\n",
    }
    assert list(said(load(two, typed_labels=True), "w").values()) == ["B-LOC", "I-LOC", "O", "B-LOC"]
    assert list(load(two).tokens) == ["New", "York", "and", "Rome"]


def test_folder_zip_and_order_of_files_give_the_same(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, data in reversed(MTURK.items()):
            archive.writestr(name, data)
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(data)
    expected = load(MTURK)
    assert conll_folder.read(files_of(tmp_path / "x.zip")) == expected
    assert conll_folder.read(files_of(tmp_path / "root")) == expected
    assert conll_folder.read(list(reversed(sources(MTURK)))) == expected
    assert read(tmp_path / "x.zip").load_report.notes[0] == "The format was detected: conll-folder."


def test_a_file_per_annotator_and_no_gold() -> None:
    files = {"ann.txt": b"a X\nb Y\n\nc X\n", "ben.txt": b"a X\nb X\n\nc X\n", "cleo.txt": b"ab X\n\nc ?\n"}
    corpus = load(files)
    assert corpus.annotators == ("ann", "ben", "cleo")
    assert list(corpus.sequence_ids) == ["0", "1"]
    assert list(corpus.tokens) == ["a", "b", "c"]
    assert said(corpus, "cleo") == {("0", 0): "X", ("0", 1): "X"}
    assert not corpus.golds


def test_an_absent_file_is_missing_and_a_cut_one_partly() -> None:
    files = {"gold/d1": b"a O\nb O\nc O\n", "gold/d2": b"x O\n", "w/d1": b"a O\nb B-X\n"}
    corpus = load(files)
    assert said(corpus, "w") == {("d1/0", 0): "O", ("d1/0", 1): "B-X"}
    assert corpus.annotated_sequences.tolist() == [True, False]
    assert corpus.load_report.counts["tokens without label"] == 1
    assert corpus.load_report.counts["files aligned by nearest characters"] == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"g/d": b"a O\nb\n", "h/d": b"a O\n"}, r"g/d:2: this line has no label"),
        ({"g/d": b"a O\nb O O\n", "h/d": b"a O\n"}, r"g/d:2: this line has 3 cells"),
        ({"gold/d": b"alpha O\nbeta O\n", "w/d": b"xyz O\nuvw O\n"}, "another text"),
        ({"gold/d": b"", "w/d": b""}, "no sequence"),
        ({"gold/d": b"a O\n", "w/d.txt": b"a O\n", "w/d.bio": b"a O\n"}, "second file"),
        ({"a/d": b"a O\n", "b": b"a O\n"}, "stands beside"),
        ({f"x.{end}": b"a O O\nb B-X O\nc B-X B-X\n" for end in ("txt", "bio")}, "second file"),
    ],
)
def test_what_is_wrong_is_said(files: dict[str, bytes], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(files)


DOC = b"Ada B-PER\nvisited O\nRome B-LOC\n\nParis B-LOC\nis O\nold O\n\nBob B-PER\nran O\n\nThe O\nUN B-ORG\nmet O\n"


def some(*numbers: int) -> bytes:
    """Return some of the four sequences of the document."""
    return b"\n\n".join(DOC.strip().split(b"\n\n")[k] for k in numbers) + b"\n"


@pytest.mark.parametrize("folder", ["{}/d.txt", "{}.txt", "x/{}/d.conll"])
def test_annotators_who_did_a_part_are_found_and_laid_where_they_belong(folder: str) -> None:
    given = {folder.format(who): data for who, data in (("ann", DOC), ("ben", some(0, 2)), ("cat", DOC))}
    assert choose(READERS, sources(given), "x") == "conll-folder"
    assert choose(READERS, sources(dict(sorted(given.items(), key=lambda item: len(item[1])))), "x") == "conll-folder"
    corpus = load(given)
    assert (corpus.annotators, corpus.n_sequences, dict(corpus.golds)) == (("ann", "ben", "cat"), 4, {})
    whole = said(corpus, "ann")
    done = {key: label for key, label in whole.items() if key[0].endswith(("0", "2"))}
    assert said(corpus, "ben") == done
    counts = corpus.load_report.counts
    assert (counts["annotator files"], counts["files aligned exactly"]) == (3, 3)
    assert (counts["files with a part of the document"], counts["tokens without label"]) == (1, 6)
    assert "files tokenised differently" not in counts


def test_without_a_gold_the_document_is_what_all_files_hold_together() -> None:
    given = {"a/d": some(0, 1), "b/d": some(1, 2), "c/d": some(2, 3), "e/d": some(0, 2, 3)}
    corpus = load(given)
    assert [corpus.sequence(k)[0] for k in range(4)] == ["Ada", "Paris", "Bob", "The"]
    assert {name: len(said(corpus, name)) for name in "abce"} == {"a": 6, "b": 5, "c": 5, "e": 8}
    assert corpus.load_report.counts["sequences that only some files have"] == 1
    assert load(dict(reversed(given.items()))) == corpus
    with_gold = load({"gold/d": some(0, 1), "w/d": some(0, 1, 2)})
    assert with_gold.n_sequences == 2
    assert with_gold.load_report.counts["sequences not in the document"] == 1
    assert "Bob ran" in with_gold.load_report.examples["sequences not in the document"][0]


def test_sequences_that_repeat_are_added_once() -> None:
    given = {f"{who}/d": some(*order) for who, order in (("a", (1, 2, 1, 3)), ("b", (3, 1, 3)), ("c", (1, 3, 2)))}
    corpus = load(given)
    assert corpus.annotated_sequences.all()
    assert {name: len(said(corpus, name)) for name in "abc"} == {"a": 11, "b": 9, "c": 8}


def test_another_text_is_an_error_and_not_spread_over_the_document() -> None:
    other = b"Totally O\nother O\ntext B-LOC\n"
    given = {"ann/d": DOC, "ben/d": other, "cat/d": DOC}
    assert choose(READERS, sources(given), "x") == "conll-folder"
    for layout in (given, {"gold/d": DOC, "w/d": other}, {"ann/d": DOC, "ben/d": other}):
        with pytest.raises(FormatError, match=r"/d:1: this is another text.*Totally other text.*they share 0 %"):
            load(layout)
    shuffled = DOC.replace(b"visited", b"v1s1ted").replace(b"Paris", b"Praris")
    assert len(said(load({"gold/d": DOC, "w/d": shuffled}), "w")) == 11
    assert said(load({"gold/d": DOC, "w/d": b""}), "w") == {}


def test_parts_of_data_are_no_annotators() -> None:
    assert conll_folder.sniff(sources({"train/d.txt": DOC, "test/d.txt": DOC})) == 0
    assert conll_folder.sniff(sources({"train.txt": DOC, "dev.txt": DOC})) == 0
    assert conll_folder.sniff(sources({"news/1.txt": DOC, "blogs/1.txt": b"Nobody O\nknows O\nwhy O\n"})) < 0.3


def test_wrong_options_are_named() -> None:
    with pytest.raises(ParameterError, match="partial must be one of"):
        load(MTURK, partial="half")
    with pytest.raises(ParameterError, match="typed_labels must be True or False"):
        load(MTURK, typed_labels=1)


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_a_corpus_or_a_lasca_error(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    assert_only_lasca_errors_in_files(lambda files: load(files, typed_labels=True), MTURK, **more)
    assert_only_lasca_errors_in_files(load, sample(), **more)


def test_a_file_of_all_annotators_beside_the_truth(tmp_path: Path) -> None:
    """As the crowd of Rodrigues et al. is given out: a column per annotator, `?` where one has not seen a text."""
    words = ["Ada", "saw", "Rome", "and", "Bonn"]
    tags = ["B-PER", "O", "B-LOC", "O", "B-LOC"]
    (tmp_path / "ground_truth.txt").write_text("".join(f"{w} {t}\n" for w, t in zip(words, tags)) + "\n")
    (tmp_path / "mv.txt").write_text("".join(f"{w} {t}\n" for w, t in zip(words, tags)) + "\n")
    (tmp_path / "answers.txt").write_text("".join(f"{w} {t} O {t} ?\n" for w, t in zip(words, tags)) + "\n")
    corpus = read(tmp_path)
    assert corpus.annotators == ("answers 1", "answers 2", "answers 3")
    assert sorted(corpus.golds) == ["gold", "mv"]
    assert corpus.n_annotations == 15
    assert any("a column for each of 4 annotators" in note for note in corpus.load_report.notes)


def test_initials_of_a_person_are_no_majority_vote() -> None:
    given = {f"{name}.txt": DOC for name in ("kl", "mv", "ab")}
    assert (load(given).annotators, dict(load(given).golds)) == (("ab", "kl", "mv"), {})
    assert load({**given, "gold.txt": DOC}).annotators == ("ab", "kl", "mv")


def test_headers_are_no_tokens(tmp_path: Path) -> None:
    for name in ("ada", "ben"):
        (tmp_path / f"{name}.tsv").write_text("word\ttag\nAda\tB-PER\nleft\tO\n\nRome\tB-LOC\nfell\tO\n")
    corpus = read(tmp_path, format="conll-folder")
    assert corpus.n_tokens == 4
    assert corpus.labels == ("B-LOC", "B-PER", "O")


def test_a_first_token_that_is_called_as_a_column_is_no_header() -> None:
    """Its tag need not stand anywhere else in a short document."""
    corpus = load({f"{name}/d": b"Text B-MISC\nof O\n\nAda B-PER\n" for name in ("ann", "ben")})
    assert list(corpus.tokens) == ["Text", "of", "Ada"]
    assert len(load({f"{name}/d": b"Word B-MISC\n" for name in ("ann", "ben")}).tokens) == 1


def conllu(*said: str) -> bytes:
    rows = [f"{k}\t{word}" + 7 * "\t_" + f"\t{tag}" for k, (word, tag) in enumerate(zip(WORDS, said), 1)]
    return ("\n".join(rows) + "\n").encode()


WORDS = ["Ada", "left", "Rome"]


def test_tags_inside_misc_of_a_file_per_annotator() -> None:
    """Whoever marked nothing in a document has said O; where anybody writes O, _ is no word."""
    given = {
        "ann/d.conllu": conllu("name=B-PER", "_", "name=B-LOC"),
        "ben/d.conllu": conllu("_", "_", "_"),
        "cat/d.conllu": conllu("SpaceAfter=No|name=B-PER", "_", "SpaceAfter=No"),
    }
    assert choose(READERS, sources(given), "x") == "conll-folder"
    corpus = load(given, column="misc:name")
    tags = {"ann": ["B-PER", "O", "B-LOC"], "ben": ["O"] * 3, "cat": ["B-PER", "O", "O"]}
    assert {name: list(said(corpus, name).values()) for name in corpus.annotators} == tags
    assert corpus.load_report.counts["_ taken as O, of which there is none"] == 6
    given["ben/d.conllu"] = conllu("name=O", "_", "_")
    corpus = load(given, column="misc:name")
    assert [len(said(corpus, name)) for name in corpus.annotators] == [2, 1, 1]
    with pytest.raises(ParameterError, match="a key that stands in column 10"):
        load(given, column="misc:ner")
    silent = {f"{name}/d": conllu("_", "_", "_") for name in ("ann", "ben")}
    assert load(silent, column="misc").n_annotations == 0  # nothing says that these would be tags


def test_labels_with_blanks_in_them(tmp_path: Path) -> None:
    """Files of Label Studio, one of each annotator; they were read as the gold of two texts."""
    (tmp_path / "ada.conll").write_text("Ada -X- _ B-Job Title\nLovelace -X- _ I-Job Title\nleft -X- _ O\nit -X- _ O\n")
    (tmp_path / "ben.conll").write_text("Ada -X- _ O\nLovelace -X- _ O\nleft -X- _ O\nit -X- _ O\n")
    corpus = read(tmp_path)
    assert corpus.annotators == ("ada", "ben")
    assert corpus.labels == ("B-Job Title", "I-Job Title", "O")


@pytest.mark.parametrize("place", ["{}/d1.csv", "{}.csv"])
def test_csv_files_of_each_annotator(tmp_path: Path, place: str) -> None:
    """Rows of token and label in a folder, or a file, of each annotator were one gold, with each text twice."""
    for name, label in (("ana", "B-PER"), ("bo", "O")):
        path = tmp_path / place.format(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"token,label\nAda,{label}\nran,O\nto,O\nRome,B-LOC\n")
    corpus = lasca.read(tmp_path)
    assert corpus.load_report.format == "conll-folder"
    assert (corpus.annotators, len(corpus), corpus.n_annotations) == (("ana", "bo"), 1, 8)


def test_files_of_different_texts_are_no_annotators(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("token,label\nAda,B-PER\nran,O\nto,O\nRome,B-LOC\n")
    (tmp_path / "b.csv").write_text("token,label\nIt,O\nrained,O\nin,O\nBonn,B-LOC\n")
    assert lasca.read(tmp_path).annotators == ()


@pytest.mark.parametrize("folders", [("2023-01", "2023-02"), ("batch_1", "batch 2"), ("20230115", "20230220")])
def test_folders_called_by_dates_are_no_annotators(tmp_path: Path, folders: tuple[str, str]) -> None:
    """Exports of several dates with a file for each annotator: the dates were the annotators."""
    for k, folder in enumerate(folders):
        (tmp_path / "a" / folder).mkdir(parents=True)
        (tmp_path / "b" / folder).mkdir(parents=True)
        for name, label in (("ana", "B-PER"), ("bo", "O")):
            row = f'{{"id": {k}, "text": "Ada ran {k}", "label": [[0, 3, "{name}"]]}}\n'
            (tmp_path / "a" / folder / f"{name}.txt").write_text(f"Ada {label}\nran O\nhome O\n{k} O\n")
            (tmp_path / "b" / folder / f"{name}.jsonl").write_text(row)
    for way in ("a", "b"):
        corpus = lasca.read(tmp_path / way)
        assert (corpus.annotators, len(corpus)) == (("ana", "bo"), 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{word} {tag} 0.{n}", "it is not clear which of them is wanted: 2: B-LOC, B-PER"),
        ("{word} {tag} {n} 1{n}", "it is not clear which of them is wanted: 2: B-LOC, B-PER"),
        ("{word} {tag} {tag}", "the files of ann and ben have several columns of the same labels each"),
        ("{word} NN {tag}", ""),
        ("{k}\t{word}\t_\t_\t_\t_\t_\t_\t_\t{tag}", ""),
        ("{tag} {word}", ""),
        ("{word} {tag}", ""),
    ],
)
def test_the_labels_are_looked_for_in_all_files_together(tmp_path: Path, line: str, said: str) -> None:
    """The last cell was the label, whatever stood in it: how sure somebody was, where a token ends, a word."""
    words = ["Ada", "met", "Bob", "in", "Rome", "and", "left", "for", "Oslo", "by", "train"]
    for name, marked in (("ann", {"Ada": "B-PER", "Rome": "B-LOC"}), ("ben", {"Ada": "B-PER"}), ("cy", {})):
        rows = [
            line.format(word=word, tag=marked.get(word, "_" if "{k}" in line else "O"), n=n, k=n + 1)
            for n, word in enumerate(words)
        ]
        (tmp_path / f"{name}.conll").write_text("\n".join(rows) + "\n")
    if said:
        with pytest.raises(FormatError, match=said):
            lasca.read(tmp_path)
    corpus = lasca.read(tmp_path, **({"column": 2} if said else {}))
    assert list(corpus.tokens) == words
    assert corpus.annotators == ("ann", "ben", "cy")
    assert (corpus.labels, corpus.n_annotations) == (("B-LOC", "B-PER", "O"), 33)


def test_labels_of_whole_texts_by_file_are_no_tokens(tmp_path: Path) -> None:
    """Read as tokens, they were one sequence of six."""
    for name, labels in (("ann", "abab"), ("ben", "abba")):
        rows = "".join(f"this is text {k}\t{label}\n" for k, label in enumerate(labels))
        for folder, header in (("with", "text\tlabel\n"), ("without", "")):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.txt").write_text(header + rows, encoding="utf-8")
    corpus = lasca.read(tmp_path / "with")
    assert (corpus.n_sequences, corpus.annotators, corpus.load_report.format) == (4, ("ann", "ben"), "table")
    with pytest.raises(FormatError, match="holds texts of several words, and not tokens"):
        lasca.read(tmp_path / "without")


def test_initial_documents_of_inception_are_nobodys(tmp_path: Path) -> None:
    for name in ("ann", "ben", "INITIAL_CAS"):
        (tmp_path / "d.txt").mkdir(exist_ok=True)
        (tmp_path / "d.txt" / f"{name}.conll").write_text(f"Ada {'O' if name == 'INITIAL_CAS' else 'B-PER'}\nran O\n")
    corpus = lasca.read(tmp_path)
    assert (corpus.annotators, corpus.load_report.counts["initial documents"]) == (("ann", "ben"), 1)
