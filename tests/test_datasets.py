"""The registry, the real files with their exact counts, and downloads from a server that misbehaves."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from seqeval.metrics import f1_score

from lasca import datasets, schemes
from lasca.corpus import CrowdCorpus
from lasca.datasets import transfer
from lasca.datasets.registry import PENN_TO_UNIVERSAL, normalised
from lasca.datasets.transfer import download
from lasca.errors import DatasetError, FormatError, LascaWarning, ParameterError

pytestmark = pytest.mark.usefixtures("_own_cache")


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASCA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LASCA_DATA", raising=False)


# --- the real files -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mturk(data_dir: Path) -> CrowdCorpus:
    return datasets.load("conll2003-mturk", path=data_dir)


@pytest.mark.data
def test_tdga(data_dir: Path) -> None:
    corpus = datasets.load("tdga", path=data_dir)
    assert (corpus.n_sequences, corpus.n_tokens, corpus.n_annotations) == (500, 7876, 0)
    assert list(corpus.golds) == ["gold1", "gold2"]
    assert int((corpus.golds["gold1"] != corpus.golds["gold2"]).sum()) == 931
    assert list(corpus.sequence_ids) == [str(i) for i in range(500)]
    assert corpus.n_labels == 13
    assert corpus.load_report.counts["missing labels"] == 1
    assert schemes.detect_corpus(corpus) is None


@pytest.mark.data
def test_tweets(data_dir: Path) -> None:
    inhouse = datasets.load("inhouse", path=data_dir)
    assert (inhouse.n_sequences, inhouse.n_tokens, inhouse.n_labels) == (200, 3064, 12)
    ritter = datasets.load("ritter-test", path=data_dir)
    assert (ritter.n_sequences, ritter.n_tokens) == (118, 2291)
    assert ritter.labels == inhouse.labels
    assert sum(token == "@USER" for token in ritter.tokens) == 79
    assert sum(token == "URL" for token in ritter.tokens) == 29
    assert "NUMBER" not in set(ritter.tokens)
    assert "NUMBER" in set(datasets.load("ritter-test", path=data_dir, numbers=True).tokens)
    penn = datasets.load("ritter-test", path=data_dir, tags="penn", normalise=False)
    assert set(penn.labels) <= set(PENN_TO_UNIVERSAL)
    names = penn.label_names(penn.golds["gold"])
    mapped = [[PENN_TO_UNIVERSAL[name] for name in row if name is not None] for row in names]
    assert mapped == ritter.label_names(ritter.golds["gold"])


@pytest.mark.data
def test_tweets_in_both_corpora(data_dir: Path) -> None:
    tdga, inhouse = datasets.load("tdga", path=data_dir), datasets.load("inhouse", path=data_dir)
    seen = {tuple(tdga.sequence(s)) for s in range(500)}
    shared = [tuple(inhouse.sequence(s)) for s in range(200) if tuple(inhouse.sequence(s)) in seen]
    assert (len(shared), len(set(shared))) == (112, 98)


@pytest.mark.data
def test_conll2003(data_dir: Path) -> None:
    train = datasets.load("conll2003", path=data_dir)
    assert (train.n_sequences, train.n_tokens) == (14041, 203621)
    assert train.labels == datasets.registry.ENTITY_LABELS
    assert schemes.detect_corpus(train) == "IOB2"
    assert schemes.count_illegal(train) == (0, 0)
    test = datasets.load("conll2003", path=data_dir, split="testb")
    assert (test.n_sequences, test.n_tokens) == (3453, 46435)
    raw = datasets.load("conll2003", path=data_dir / "conll2003" / "eng.testb", scheme="IOB1")
    assert schemes.detect_corpus(raw) == "IOB1"
    assert test.load_report.counts["converted to IOB2"] == int((raw_starts(raw) != 0).sum())
    entities = [len(schemes.spans([n or "O" for n in row])) for row in test.label_names(test.golds["gold"])]
    assert sum(entities) == 5648


def raw_starts(corpus: CrowdCorpus) -> np.ndarray:
    """Return 1 where a tag changes between IOB1 and IOB2, by the slow way over lists."""
    rows = corpus.label_names(corpus.golds["gold"])
    return np.array([a != b for row in rows for a, b in zip(row, schemes.convert(row, "IOB2"))], dtype=int)


@pytest.mark.data
def test_mturk_counts(mturk: CrowdCorpus) -> None:
    assert (mturk.n_sequences, mturk.n_tokens, mturk.n_annotators) == (6253, 82958, 47)
    assert mturk.n_annotations == 405_998
    assert int(mturk.annotated_sequences.sum()) == 6056
    assert mturk.labels == ("B-LOC", "B-MISC", "B-ORG", "B-PER", "I-LOC", "I-MISC", "I-ORG", "I-PER", "O")
    assert dict(mturk.load_report.counts) == {
        "documents": 399,
        "annotator files": 1964,
        "files tokenised differently": 1158,
        "files aligned exactly": 1954,
        "files aligned by nearest characters": 10,
        "tokens without label": 7,
        "typed labels": 2846,
        "typed labels on O": 2272,
        "typed labels taken off gold tokens": 13,
        "shrunk": 1820,
    }
    assert schemes.count_illegal(mturk)[1] == 49
    first, last = mturk.sequence_ids[0].split("/"), mturk.sequence_ids[-1].split("/")
    assert (first[0], first[2], last[0]) == ("val", "0", "test")
    assert set(mturk.metadata["folder"]) == {"val", "test"}
    assert len(set(mturk.metadata["document"])) == 399
    unlabelled = ~mturk.annotated_sequences
    assert len({mturk.metadata["document"][int(s)] for s in np.flatnonzero(unlabelled)}) == 1


def votes(corpus: CrowdCorpus) -> np.ndarray:
    table = np.zeros((corpus.n_tokens, corpus.n_labels), int)
    np.add.at(table, (corpus.annotation_token, corpus.annotation_label), 1)
    return table


def n_ties(table: np.ndarray) -> int:
    best = table.max(axis=1)
    return int(((table == best[:, None]).sum(axis=1) > 1)[best > 0].sum())


@pytest.mark.data
def test_mturk_majority(mturk: CrowdCorpus) -> None:
    table = votes(mturk)
    best = table.max(axis=1)
    outside = mturk.labels.index("O")
    first = table.argmax(axis=1)
    to_outside = np.where(table[:, outside] == best, outside, first)
    annotated = np.flatnonzero(mturk.annotated_sequences)
    test = [s for s in annotated if mturk.sequence_ids[int(s)].startswith("test/")]
    gold = mturk.label_names(mturk.golds["gold"])

    def score(codes: np.ndarray, sequences: list[int] | np.ndarray) -> float:
        names = mturk.label_names(codes)
        return 100 * float(f1_score([gold[s] for s in sequences], [names[s] for s in sequences]))

    scores = [score(codes, part) for codes in (first, to_outside) for part in (annotated, test)]
    np.testing.assert_allclose(scores, [67.0, 64.5, 61.8, 58.3], rtol=0, atol=0.3)


@pytest.mark.data
def test_mturk_other_readings(data_dir: Path, mturk: CrowdCorpus) -> None:
    # the 1,909 ties of the data's README are those of the reading "expand"
    expanded = datasets.load("conll2003-mturk", path=data_dir, partial="expand")
    assert (n_ties(votes(expanded)), n_ties(votes(mturk))) == (1909, 1903)


@pytest.mark.data
@pytest.mark.slow
def test_mturk_typed_labels(data_dir: Path, mturk: CrowdCorpus) -> None:
    typed = datasets.load("conll2003-mturk", path=data_dir, typed_labels=True)
    more = int((typed.annotation_label != mturk.annotation_label).sum())
    assert 2000 < more <= 2272


@pytest.mark.data
def test_found_by_the_environment(data_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert datasets.path("tdga") is None
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    assert datasets.path("tdga") == [data_dir / "tdga" / "annotation-all.txt"]
    assert datasets.load("tdga").n_tokens == 7876
    (tmp_path / "tdga").mkdir()
    (tmp_path / "tdga" / "annotation-all.txt").write_text("a\tX\tY\nb\tX\tX\n")
    monkeypatch.setenv("LASCA_DATA", str(tmp_path))
    with pytest.warns(LascaWarning, match="not the published file of tdga"):
        assert datasets.load("tdga").n_tokens == 2


# --- the registry -------------------------------------------------------------------------------------------------


def test_the_registry() -> None:
    assert datasets.names() == ("conll2003", "conll2003-mturk", "inhouse", "ritter-test", "tdga")
    for entry in datasets.REGISTRY.values():
        assert entry.licence
        assert entry.citation
        assert entry.downloadable == (entry.name != "conll2003")
        for file in entry.files:
            assert (file.url is None) == (file.sha256 is None) == (not entry.downloadable)
            if file.url is not None and file.sha256 is not None:
                assert file.url.startswith("https://raw.githubusercontent.com/")
                assert len(file.sha256) == 64


def test_unknown_names_options_and_paths(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="There are: conll2003, conll2003-mturk"):
        datasets.load("conll")
    with pytest.raises(ParameterError, match="an option of ritter-test must be one of tags"):
        datasets.load("ritter-test", tagset="x")
    with pytest.raises(ParameterError, match="an option of tdga must be left out"):
        datasets.load("tdga", split="x")
    with pytest.raises(ParameterError, match="split must be one of 'train', 'testb'"):
        datasets.load("conll2003", split="dev")
    with pytest.raises(DatasetError, match=r"has no public address.*LASCA_DATA"):
        datasets.load("conll2003")
    with pytest.raises(DatasetError, match=r"tdga is not there.*annotation-all\.txt"):
        datasets.load("tdga", path=tmp_path)
    (tmp_path / "ritter-eval.tsv").write_text("a\tXYZ\tO\n")
    with pytest.raises(FormatError, match="no tag of RITTER-TEST"):
        datasets.load("ritter-test", path=tmp_path)
    (tmp_path / "crf-ma-NER-task1.zip").write_bytes(b"PK\x03\x04broken")
    with pytest.raises(FormatError):
        datasets.load("conll2003-mturk", path=tmp_path)


def test_tokens_are_normalised() -> None:
    assert normalised("@x", "USR") == "@USER"
    assert normalised("@8pm", "CD") == "@8pm"
    assert normalised("http://a.b/c", "URL") == "URL"
    assert normalised("com", "URL") == "com"
    assert [normalised(t, "CD", numbers=True) for t in ("2", "204", "10/2", "2nd")] == ["2", "NUMBER", "NUMBER", "2nd"]
    assert set(PENN_TO_UNIVERSAL.values()) == {
        ".", "ADJ", "ADP", "ADV", "CONJ", "DET", "NOUN", "NUM", "PRON", "PRT", "VERB", "X"
    }  # fmt: skip


# --- downloads ----------------------------------------------------------------------------------------------------

GOOD = b"".join(b"word%d\tNOUN\tNOUN\n" % i for i in range(9000)) + b"\nend\tX\t.\n"


class Handler(BaseHTTPRequestHandler):
    """Serves /good (with ranges), /plain (without), /wrong, /cut (always half), /slow (half once), /error."""

    server: Server

    def do_GET(self) -> None:
        kind = self.path.strip("/")
        wanted = self.headers.get("Range")
        self.server.asked.append((kind, wanted))
        if kind == "error":
            self.send_error(503, "Down for repair")
            return
        data = GOOD if kind != "wrong" else b"x" * len(GOOD)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and kind != "plain" else 0
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        rest = data[start:]
        cut = kind == "cut" or (kind == "once" and not wanted)
        self.wfile.write(rest[: len(rest) // 2] if cut else rest)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def entry_at(server: Server, kind: str) -> tuple[datasets.Dataset, datasets.DataFile]:
    entry = datasets.REGISTRY["tdga"]
    address = f"http://127.0.0.1:{server.server_address[1]}/{kind}"
    file = datasets.DataFile("tdga/annotation-all.txt", address, hashlib.sha256(GOOD).hexdigest())
    return replace(entry, files=(file,)), file


def test_a_download_is_checked_and_kept(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = download(*entry_at(server, "good"), progress=lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "cache" / "tdga" / "annotation-all.txt"
    assert path.read_bytes() == GOOD
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert [p.name for p in path.parent.iterdir()] == ["annotation-all.txt"]
    assert download(*entry_at(server, "error")) == path  # what is there is not fetched again
    assert server.asked == [("good", None)]


def test_load_downloads_what_is_not_there(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, _ = entry_at(server, "good")
    monkeypatch.setattr(datasets, "dataset", lambda name: entry)
    assert datasets.load("tdga").n_tokens == 9001
    assert datasets.load("tdga").n_tokens == 9001
    assert len(server.asked) == 1
    paths = datasets.path("tdga")
    assert paths is not None
    assert datasets.fetch("tdga") == paths
    paths[0].write_bytes(b"spoilt")
    assert datasets.path("tdga") is None
    assert datasets.load("tdga").n_tokens == 9001


def test_a_wrong_file_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"SHA-256 differs.*Nothing was kept"):
        download(*entry_at(server, "wrong"))
    assert list((tmp_path / "cache" / "tdga").iterdir()) == []


def test_a_cut_download_goes_on(server: Server, tmp_path: Path) -> None:
    assert download(*entry_at(server, "once")).read_bytes() == GOOD
    assert server.asked == [("once", None), ("once", f"bytes={len(GOOD) // 2}-")]


def test_a_download_that_is_always_cut_keeps_its_part(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"cut off.*go on from there"):
        download(*entry_at(server, "cut"))
    part = tmp_path / "cache" / "tdga" / "annotation-all.txt.part"
    have = part.stat().st_size
    assert 0 < have < len(GOOD)
    assert len(server.asked) == transfer.ATTEMPTS
    assert download(*entry_at(server, "good")).read_bytes() == GOOD
    assert server.asked[-1] == ("good", f"bytes={have}-")
    assert not part.exists()


def test_a_server_without_ranges_sends_all(server: Server, tmp_path: Path) -> None:
    part = tmp_path / "cache" / "tdga" / "annotation-all.txt.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"not the beginning")
    assert download(*entry_at(server, "plain")).read_bytes() == GOOD


@pytest.mark.parametrize("left", [b"not the beginning", GOOD, GOOD + b"more"])
def test_a_wrong_or_whole_part_is_no_obstacle(server: Server, tmp_path: Path, left: bytes) -> None:
    part = tmp_path / "cache" / "tdga" / "annotation-all.txt.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    assert download(*entry_at(server, "good")).read_bytes() == GOOD
    assert not part.exists()


def test_an_error_of_the_server_and_no_server(server: Server) -> None:
    with pytest.raises(DatasetError, match="the server answered 503 Down for repair"):
        download(*entry_at(server, "error"))
    entry, file = entry_at(server, "good")
    with pytest.raises(DatasetError, match="cannot be reached"):
        download(entry, replace(file, url="http://127.0.0.1:9/x"))


def test_a_file_that_is_too_large(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MAX_SIZE", 1000)
    with pytest.raises(DatasetError, match="larger than 1,000 bytes"):
        download(*entry_at(server, "good"))


def test_another_folder(server: Server, tmp_path: Path) -> None:
    path = download(*entry_at(server, "good"), folder=tmp_path / "here")
    assert path == tmp_path / "here" / "tdga" / "annotation-all.txt"
