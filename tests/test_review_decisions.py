"""The log of decisions: append-only, several writers, second opinions; decisions as known labels."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, StoreError
from lasca.files import DECISIONS
from lasca.review.decisions import Decision, Log
from lasca.review.finish import SOURCES, _spans
from lasca.review.project import clamped, known_labels, needed_labels, refit, with_labels
from lasca.review.queue import make_queue
from lasca.review.spans import Labels
from lasca.review.take import _whole
from lasca.truth import Clusters, model_class
from test_review_queue import ner, truth_of


def say(start: int, stop: int, *readings: tuple[tuple[int, int, str], ...], **more: object) -> Decision:
    return Decision("0", start, stop, readings, **more)  # type: ignore[arg-type]


def test_decisions_come_back_as_they_were_and_undo_is_an_event(tmp_path: Path) -> None:
    log = Log(tmp_path)
    first = say(0, 2, ((0, 2, "X"),), who="ann", shown={"candidates": ["a"], "votes": False})
    log.add([first])
    log.add([say(3, 4, (), who="ann", batch="b1"), say(5, 6, (), who="ann", batch="b1")])
    again = Log(tmp_path).live()
    assert [(d.start, d.readings, d.who) for d in again] == [
        (0, first.readings, "ann"),
        (3, ((),), "ann"),
        (5, ((),), "ann"),
    ]
    assert again[0].shown == first.shown
    assert log.undo("bob") == []
    assert [d.start for d in log.undo("ann")] == [3, 5]  # the whole batch
    assert [d.start for d in log.live()] == [0]
    with sqlite3.connect(tmp_path / DECISIONS) as base:
        assert base.execute("SELECT count(*) FROM events").fetchone() == (5,)
        for statement in ("DELETE FROM events", "UPDATE events SET who = 'eve'"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                base.execute(statement)


def test_the_last_decision_alone_is_taken_back_and_of_another_batch_or_reviewer_none(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.add([say(0, 1, (), who="ann", batch="b1"), say(1, 2, (), who="ann", batch="b1")])
    for start in (2, 3):  # one by one: decisions without a batch are no batch
        log.add([say(start, start + 1, (), who="ann")])
        log.add([say(start, start + 1, (), who="bob")])
    taken = [[d.start for d in log.undo("ann")] for _ in range(4)]
    assert taken == [[3], [2], [0, 1], []]
    assert [(d.who, d.start) for d in log.live()] == [("bob", 2), ("bob", 3)]


def test_reading_makes_no_log(tmp_path: Path) -> None:
    """An empty log kept `lasca run --overwrite` from its own folder."""
    log, other = Log(tmp_path), Log(tmp_path)
    assert (log.live(), log.standing(), log.agreement()) == ([], [], (0, 0))
    log.copy(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
    other.add([Decision("s", 0, 1, ((),))])
    assert len(log.live()) == 1  # another process made it meanwhile


def test_second_opinions(tmp_path: Path) -> None:
    log = Log(tmp_path)
    x, y = ((0, 1, "X"),), ((0, 1, "Y"),)
    log.add([say(0, 1, x, who="a"), say(0, 1, y, who="b"), say(2, 3, x, who="a"), say(2, 3, x, who="b")])
    assert log.agreement() == (2, 1)
    disputed = next(s for s in log.standing() if s.decision.start == 0)
    assert disputed.disputed
    assert disputed.decision.readings == (y,)  # the last word where it is even
    log.add([say(0, 1, x, who="c")])
    assert next(s for s in log.standing() if s.decision.start == 0).decision.readings == (x,)
    log.add([say(0, 1, x, who="b")])
    assert log.agreement() == (2, 2)


def test_pseudonyms_keep_no_name(tmp_path: Path) -> None:
    log = Log(tmp_path, pseudonyms=True)
    log.add([say(0, 1, (), who="Ada Lovelace"), say(1, 2, (), who="Bob"), say(2, 3, (), who="Ada  Lovelace")])
    assert [d.who for d in log.live()] == ["R1", "R2", "R1"]
    assert all(b"Lovelace" not in file.read_bytes() for file in tmp_path.iterdir())


def test_reviewers_at_once_lose_nothing(tmp_path: Path) -> None:
    def work(who: str) -> None:
        log = Log(tmp_path)
        for i in range(15):
            log.add([say(i, i + 1, (), who=who)])

    threads = [threading.Thread(target=work, args=(f"r{k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Log(tmp_path).live()) == 60


def test_many_open_a_new_log_at_once(tmp_path: Path) -> None:
    refused: list[Exception] = []

    def come(folder: Path, gate: threading.Barrier) -> None:
        gate.wait()
        try:
            Log(folder).add([Decision("s", 0, 1, ((),))])
        except StoreError as error:
            refused.append(error)

    for turn in range(60):  # without a second try about one turn in thirty ended in "database is locked"
        folder, gate = tmp_path / str(turn), threading.Barrier(6)
        folder.mkdir()
        threads = [threading.Thread(target=come, args=(folder, gate)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not refused


def test_a_log_that_is_busy_is_waited_for_and_one_that_fails_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals: list[int] = []

    class Refusing(sqlite3.Connection):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
            if "journal_mode" in statement and refusals:
                error = sqlite3.OperationalError("refused")
                error.sqlite_errorcode = refusals.pop()
                raise error
            return super().execute(statement, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, **more, factory=Refusing))
    refusals += [sqlite3.SQLITE_BUSY] * 3
    assert Log(tmp_path).undo("ann") == []
    assert not refusals
    refusals += [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR]
    with pytest.raises(StoreError, match="cannot be opened"):
        Log(tmp_path)
    assert refusals.pop() == sqlite3.SQLITE_BUSY  # nobody came again
    monkeypatch.setattr("lasca.review.decisions._PATIENCE", -1.0)
    refusals += [sqlite3.SQLITE_BUSY] * 3
    with pytest.raises(StoreError, match="cannot be opened"):
        Log(tmp_path)
    assert len(refusals) == 2


def test_a_kill_loses_at_most_the_decision_in_flight(tmp_path: Path) -> None:
    code = (
        "import sys; from lasca.review.decisions import Decision, Log; log = Log(sys.argv[1])\n"
        "for i in range(10**6):\n    log.add([Decision('0', i, i + 1, ((),))]); print(i, flush=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            break
    os.kill(process.pid, signal.SIGKILL)
    acknowledged = max([20, *(int(line) for line in process.stdout.read().split())])
    process.wait()
    process.stdout.close()
    found = [d.start for d in Log(tmp_path).live()]
    assert found == list(range(len(found)))
    assert acknowledged + 1 <= len(found) <= acknowledged + 2


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / DECISIONS).write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        Log(tmp_path)


def test_a_log_that_cannot_be_written_says_so_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lasca.review.decisions._PATIENCE", 0.05)
    log = Log(tmp_path)
    log.add([say(0, 1, ())])
    other = sqlite3.connect(tmp_path / DECISIONS, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"cannot be read or written.*locked"):
        log.add([say(1, 2, ())])
    other.execute("ROLLBACK")
    other.close()
    pages = log._base.execute("PRAGMA page_count").fetchone()[0]
    log._base.execute(f"PRAGMA max_page_count = {pages}")  # as on a disk that is full
    with pytest.raises(StoreError, match="full"):
        log.add([say(i, i + 1, (), shown={"text": "x" * 4000}) for i in range(50)])
    assert [d.start for d in log.live()] == [0]
    log._base.execute("PRAGMA max_page_count = 1000000")
    log.add([say(1, 2, ())])
    assert [d.start for d in log.live()] == [0, 1]
    with pytest.raises(StoreError, match="cannot be read or written"):
        log.copy(tmp_path / "nowhere")


def test_decisions_become_known_labels() -> None:
    corpus = ner(a=["B-X", "O", "O", "O", "O"], b=["O", "O", "B-X", "I-X", "O"])
    truth = truth_of(corpus)
    decisions = [say(0, 2, ((0, 2, "X"),)), say(3, 4, (), ((3, 4, "X"),)), say(4, 5, (), audit=True)]
    known = known_labels(corpus, decisions, audits=False)
    names = np.array(corpus.labels)
    assert [set(names[row]) for row in known.allowed[:2]] == [{"B-X"}, {"I-X"}]
    assert set(names[known.allowed[2]]) == {"O", "B-X"}  # the span ended before it
    assert set(names[known.allowed[3]]) == {"O", "B-X"}  # both are kept
    assert set(names[known.allowed[4]]) == {"O", "B-X"}  # an audit is not known to the fit
    assert known.source.tolist() == [1, 1, 0, 1, 0]
    final = clamped(truth, known_labels(corpus, decisions, audits=True))
    assert [corpus.labels[c] for c in final.labels] == ["B-X", "I-X", "B-X", "O", "O"]
    assert final.proba.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("later", [((2, 6, "X"),), ((2, 6, "Y"),), ((2, 3, "Y"),), ()])
def test_a_span_that_a_later_decision_cuts_is_open_again(later: tuple[tuple[int, int, str], ...]) -> None:
    """What is left of it is nobody's decision: as I-X behind the later span it made that one longer, or no span."""
    labels = ["B-X", "I-X", "B-Y", "I-Y", "O"]
    corpus = CrowdCorpus.from_sequences([[f"w{i}" for i in range(10)]], {"a": [["O"] * 10]}, labels=labels)
    names = np.array(corpus.labels)
    for first, second, left in ((4, 2, (6, 8)), (0, 2, (0, 2))):  # cut from the left, and from the right
        span = (first, first + 4, "X") if first else (0, 4, "X")
        decisions = [say(0, 10, (span, (9, 10, "Y"))), say(second, 6, later)]
        known = known_labels(corpus, decisions, audits=False)
        assert known.source.tolist() == [0 if left[0] <= i < left[1] else 1 for i in range(10)]
        assert known.codes[9] == corpus.labels.index("B-Y")  # what the earlier decision said of others stays
        for i in range(*left):
            assert set(names[known.allowed[i]]) == ({"B-X", "B-Y", "O"} if i == 6 else set(names))
        read = Labels.of(corpus).of_sequence(np.where(known.source > 0, known.codes, corpus.labels.index("O")).tolist())
        assert set(read) == {*later, (9, 10, "Y")}


def test_a_tag_that_nobody_gave_is_added() -> None:
    corpus = ner(a=["B-X", "O"], b=["B-X", "O"])
    truth = truth_of(corpus)
    decision = say(0, 2, ((0, 2, "X"),))
    wide, wider = with_labels(corpus, truth, needed_labels(Labels.of(corpus), [decision]))
    assert wide.labels == ("B-X", "O", "I-X")
    final = clamped(wider, known_labels(wide, [decision], audits=True))
    assert [wide.labels[c] for c in final.labels] == ["B-X", "I-X"]
    groups = Clusters(np.zeros(2, np.int32), np.ones((2, 1), np.float32), np.eye(2, dtype=np.float32)[None])
    _, grouped = with_labels(corpus, replace(truth, clusters=groups), ["I-X"])
    assert grouped.clusters is not None
    assert grouped.clusters.shared.tolist() == [[[1, 0, 0], [0, 1, 0], [0, 0, 0]]]
    assert grouped.confusion.shape == (2, 3, 3)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision("nowhere", 0, 1, ((),)), "no such sequence"),
        (say(0, 99, ()), "has 2 tokens"),
        (say(0, 1, ((0, 2, "X"),)), "inside what is decided"),
        (say(0, 2, ((0, 1, "X"), (0, 2, "X"))), "inside what is decided"),
        (say(0, 1, ((0, 1, "<script>"),)), "no such label"),
    ],
)
def test_decisions_that_do_not_fit_are_refused(decision: Decision, words: str) -> None:
    corpus = ner(a=["B-X", "O"], b=["B-X", "O"])
    with pytest.raises(CorpusError, match=words):
        known_labels(corpus, [decision], audits=True)


def test_a_refit_keeps_to_what_was_decided() -> None:
    corpus = ner(a=["B-X", "O", "O"], b=["O", "O", "B-X"], c=["B-X", "O", "O"])
    truth = truth_of(corpus, model="ds")
    known = known_labels(corpus, [say(0, 1, ()), say(2, 3, ((2, 3, "X"),))], audits=False)
    again = refit(corpus, truth, known)
    assert [corpus.labels[c] for c in again.labels] == ["O", "O", "B-X"]
    assert again.model == "ds"
    assert again.proba.sum(axis=1) == pytest.approx(1)


def test_a_refit_keeps_what_was_known_before() -> None:
    """Decisions replace it on their own tokens; elsewhere it holds, with a new label as without."""
    said = {name: [["B-X", "O", "B-X", "O"]] for name in "abc"}
    corpus = CrowdCorpus.from_sequences([["v", "w", "x", "y"]], said, labels=["B-X", "O"])
    code = corpus.labels.index
    corpus = corpus.with_known(np.array([code("O"), -1, code("B-X"), -1]))
    truth = model_class("ds")().fit(corpus)
    decisions = [say(2, 4, ((2, 4, "X"),))]
    wide, wider = with_labels(corpus, truth, needed_labels(Labels.of(corpus), decisions))
    again = refit(wide, wider, known_labels(wide, decisions, audits=False))
    assert [wide.labels[c] for c in again.labels[[0, 2, 3]]] == ["O", "B-X", "I-X"]
    decisions = [say(0, 1, ((0, 1, "X"),))]
    again = refit(corpus, truth, known_labels(corpus, decisions, audits=False))
    assert [corpus.labels[c] for c in again.labels[[0, 2]]] == ["B-X", "B-X"]
    assert not make_queue(corpus, truth).items  # nobody is asked what is known


@pytest.mark.parametrize(
    ("tokens", "span"),
    [
        (("inferred", "audited"), "inferred"),
        (("decided", "agreed"), "agreed"),
        (("audited", "decided"), "decided"),
        (("audited", "audited"), "audited"),
    ],
)
def test_a_span_is_as_well_founded_as_its_weakest_token(tokens: tuple[str, str], span: str) -> None:
    corpus = ner(a=["O", "B-X", "I-X"])
    source = np.array([SOURCES.index("inferred"), *map(SOURCES.index, tokens)])
    (row,) = _spans(corpus, truth_of(corpus), source, np.ones((3, corpus.n_labels), bool))
    assert (row["start"], row["stop"], row["source"]) == (1, 3, span)


def test_who_labelled_a_part_of_a_sequence_decided_nothing_about_it() -> None:
    said = {"expert": np.array([0, 1, -1, 2])}
    assert _whole(said, 0, 2) == {"expert": [0, 1]}
    assert _whole(said, 0, 3) == _whole(said, 2, 4) == _whole(said, 1, 1) == {}
