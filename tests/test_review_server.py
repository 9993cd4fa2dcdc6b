"""The review's server: its endpoints, who may talk to it, and what it does with what it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from lasca import simulate
from lasca.cli.commands.review import promise_words
from lasca.corpus import CrowdCorpus
from lasca.pipeline.folder import save_truth
from lasca.review.decisions import Decision
from lasca.review.finish import LOOKED_AT, _written, card_of
from lasca.review.items import find_items
from lasca.review.project import Project
from lasca.review.promise import Unit
from lasca.review.server import Address, make_app
from lasca.review.session import RANK_AFTER, Session, _first_words
from lasca.truth import model_class
from report_cases import NASTY

TOKEN = "secret"
ORIGIN = "http://127.0.0.1:8000"


def run_folder(path: Path, model: str = "ds") -> Path:
    """A small crowd and its truth, as `lasca aggregate` leaves them."""
    corpus = simulate.demo_crowd("ner").select(sequences=np.arange(60))
    save_truth(corpus, model_class(model)().fit(corpus), path)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("run") / "out")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    import shutil

    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out"


class Client:
    """Talks to the server as the page does."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.session = Session(Project(folder), **({"refit_after": 0, "audit_every": 5} | options))
        self.client = TestClient(make_app(self.session, Address(8000, TOKEN), "T"), base_url=ORIGIN)

    def get(self, what: str, status: int = 200, **values: Any) -> Any:
        answer = self.client.get(f"/{TOKEN}/api/{what}", params=values)
        assert answer.status_code == status, answer.text
        return answer.json() if status == 200 else answer.text

    def post(self, what: str, body: Any, status: int = 200) -> Any:
        answer = self.client.post(f"/{TOKEN}/api/{what}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json() if status == 200 else answer.text


def test_a_decision_leaves_the_queue_and_stays_in_the_log(folder: Path) -> None:
    page = Client(folder)
    first = page.get("queue")["items"][0]
    item = page.get("item", item=first["item"])
    assert "votes" not in item["candidates"][0]
    assert "votes" in page.get("item", item=first["item"], votes=1)["candidates"][0]
    before = page.get("state")
    answer = page.post("decide", {"who": "ann", "item": first["item"], "readings": [item["candidates"][1]["spans"]]})
    assert answer["state"]["decided"] == before["decided"] + 1
    assert answer["state"]["errors"] <= before["errors"]
    left = [row["item"] for row in page.get("queue")["items"]]
    assert first["item"] not in left
    again = Client(folder)  # another process
    assert again.get("state")["decided"] == 1
    assert first["item"] not in [row["item"] for row in again.get("queue")["items"]]
    (decision,) = Project(folder).standing()
    assert [list(map(list, r)) for r in decision.readings] == [item["candidates"][1]["spans"]]
    assert decision.shown["candidates"] == [c["spans"] for c in item["candidates"]]
    assert page.post("undo", {"who": "bob"})["items"] == []
    assert page.post("undo", {"who": "ann"})["items"] == [first["item"]]
    assert page.get("queue")["items"][0]["item"] == first["item"]


def test_what_a_refit_changed_is_counted_by_areas_of_a_sequence_that_nobody_decided(folder: Path) -> None:
    session = Session(Project(folder), refit_after=0)
    fit, border = session._fit, session._fit.corpus.offsets
    assert min(np.diff(border)[:4]) >= 4
    apart, together = [border[1] - 1, border[1]], [border[2] + 1, border[2] + 2]  # two sequences meet at the first
    guess, decided = border[3] + 1, border[4] + 1
    labels, voted, source = fit.truth.labels.copy(), np.ones(len(fit.truth.labels), bool), fit.known.source.copy()
    at = [*apart, *together, guess, decided]
    labels[at] = (labels[at] + 1) % fit.corpus.n_labels
    voted[guess], source[decided] = False, 1
    before = replace(fit, truth=replace(fit.truth, voted=voted))
    after = replace(fit, truth=replace(fit.truth, labels=labels), known=replace(fit.known, source=source))
    found = session._compare(before, after)
    assert found["areas"] == 3
    assert [row["word"] for row in found["examples"]] == [fit.corpus.tokens[int(i)] for i in (*apart, together[0])]
    names = fit.corpus.labels
    assert (found["examples"][0]["before"], found["examples"][0]["after"]) == (
        names[fit.truth.labels[apart[0]]],
        names[labels[apart[0]]],
    )
    assert session._compare(fit, fit) == {"areas": 0, "examples": []}


def test_a_fit_learns_nothing_from_decisions_on_what_was_audited_before(folder: Path) -> None:
    project = Project(folder)
    first, second = project.corpus.sequence_ids[:2]

    def said(sequence: str, start: int, stop: int, audit: bool = False) -> Decision:
        return Decision(sequence, start, stop, ((),), audit=audit)

    before = said(first, 1, 3)
    beside = [said(first, 0, 2), said(first, 4, 5), said(second, 2, 4)]
    over = [said(first, 2, 4), said(first, 1, 5), said(first, 3, 4)]
    project.log.add([before, said(first, 2, 4, audit=True), *beside, *over])
    assert [(d.sequence, d.start, d.stop) for d in project.taught()] == [
        (d.sequence, d.start, d.stop) for d in (before, *beside)
    ]


def test_second_opinions_are_blind_and_counted(folder: Path) -> None:
    page = Client(folder)
    name = page.get("queue")["items"][0]["item"]
    spans = page.get("item", item=name)["candidates"][0]["spans"]
    page.post("decide", {"who": "ann", "item": name, "readings": [spans]})
    assert [row["item"] for row in page.get("queue", who="bob", second=1)["items"]] == [name]
    assert page.get("queue", who="ann", second=1)["items"] == []
    state = page.post("decide", {"who": "bob", "item": name, "readings": [spans]})["state"]
    assert state["second"] == {"areas": 1, "same": 1}
    assert state["decided"] == 1


def test_a_second_opinion_on_moved_borders_can_be_given(folder: Path) -> None:
    """What ann said reaches further than the item: under another name it was refused, as no item of the queue."""
    project = Project(folder)
    names = [item.id for item in project.queue(project.fit(again=False)).items if item.area.start]
    session = Session(project, refit_after=0)
    for name in (names[0], next(name for name, item in session._order if item.reason == "audit" and item.area.start)):
        item = session.item(name)
        longer = ((item["start"] - 1, item["stop"], item["types"][0]),)
        session.decide("ann", name, [longer])
        later = Session(Project(folder), refit_after=0)  # what was decided is no longer in its queue
        row = next(row for row in later.part("bob", 0, 1000, second=True)["items"] if row["item"] == name)
        shown = later.item(row["item"])
        assert shown["item"] == name
        later.decide("bob", shown["item"], [longer])
        first, second = (d for d in later.project.log.live() if d.shown["item"] == name)
        assert (first.start, first.stop, first.shown.get("unit")) == (
            second.start,
            second.stop,
            second.shown.get("unit"),
        )


def test_the_same_for_all_alike_is_one_batch(folder: Path) -> None:
    page = Client(folder)
    groups = [row for row in page.get("queue", n=1000)["items"] if row["alike"]]
    name = groups[0]["item"]
    others = [row["item"] for row in page.get("alike", item=name)["items"]]
    assert others
    spans = page.get("item", item=name)["candidates"][0]["spans"]
    state = page.post("decide", {"who": "a", "item": name, "readings": [spans], "alike": others})["state"]
    assert state["decided"] == 1 + len(others)
    assert len(page.post("undo", {"who": "a"})["items"]) == 1 + len(others)
    stranger = next(row["item"] for row in page.get("queue", n=1000)["items"] if row["item"] not in [name, *others])
    page.post("decide", {"who": "a", "item": name, "readings": [spans], "alike": [stranger]}, status=409)
    assert page.get("state")["decided"] == 0


def test_audits_are_part_of_the_queue_and_never_known_to_the_fit(folder: Path) -> None:
    page = Client(folder)
    rows = page.get("queue", n=1000)["items"]
    audits = [row for row in rows if row["reason"] == "audit"]
    assert [row["reason"] for row in rows].index("audit") == 5
    item = page.get("item", item=audits[0]["item"])
    assert item["audit"]
    page.post(
        "decide", {"who": "a", "item": item["item"], "readings": [item["candidates"][0]["spans"]], "missed": True}
    )
    project = Project(folder)
    fit = project.fit()
    assert (fit.known.source == 0).all()
    ((unit, wrong),) = project.audited(fit)
    assert project.units[unit].id == item["item"].removeprefix("audit ")
    assert wrong == item["rest"]
    assert "lesson" not in project.standing()[0].shown  # what is sure says nothing of what is asked about


def test_decisions_and_audits_are_counted_apart_as_on_the_card(folder: Path) -> None:
    page = Client(folder)
    queue = page.get("queue", n=1000)
    audits = [row["item"] for row in queue["items"] if row["item"].startswith("audit ")]
    assert queue["audits"] == len(audits)
    assert queue["total"] == len(queue["items"]) == page.get("state")["open"] + len(audits)
    for name in (audits[0], queue["items"][0]["item"]):
        spans = page.get("item", item=name)["candidates"][0]["spans"]
        state = page.post("decide", {"who": "a", "item": name, "readings": [spans]})["state"]
    assert (state["decided"], state["audited"]) == (1, 1)
    assert page.get("queue", n=1000)["audits"] == len(audits) - 1


def test_rows_of_the_list_say_why_in_the_words_of_the_card_and_where_they_are_cut(folder: Path) -> None:
    page = Client(folder)
    for row in page.get("queue", n=1000)["items"]:
        assert row["why"] == page.get("item", item=row["item"])["why"]
    assert _first_words("no more than fits") == "no more than fits"
    cut = _first_words("word " * 40)
    assert cut.endswith("word …")
    assert len(cut) <= 82


def test_an_item_that_is_audited_as_well_is_asked_once(tmp_path: Path) -> None:
    people = {"a": [["X"]] * 6 + [["Y"]] * 2, "b": [["X"]] * 4 + [["Y"]] * 4, "c": [["X"], ["Y"]] * 4}
    corpus = CrowdCorpus.from_sequences([[f"text{i}"] for i in range(8)], people)
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "out")
    page = Client(tmp_path / "out", audit_every=1, refit_after=0, rank_after=0)

    def names() -> list[str]:
        return [row["item"] for row in page.get("queue", n=1000)["items"]]

    def answer(name: str) -> Any:
        spans = page.get("item", item=name)["candidates"][0]["spans"]
        return page.post("decide", {"who": "a", "item": name, "readings": [spans]})["state"]

    audits = [name for name in names() if name.startswith("audit ") and name.removeprefix("audit ") in names()]
    before = page.get("state")
    expected = {item.id: item.errors for item in page.session._queue.items}
    state = answer(audits[0])
    settled = expected[audits[0].removeprefix("audit ")]  # with the answer to the audit the item is answered, too
    assert settled > 0
    assert state["errors"] == pytest.approx(before["errors"] - settled, abs=0.11)
    assert audits[0].removeprefix("audit ") not in names()
    assert (state["open"], state["audited"], state["waiting"]) == (before["open"] - 1, 1, 0)
    answer(audits[1].removeprefix("audit "))
    assert audits[1] not in names()
    while names():
        state = answer(names()[0])
    assert (state["open"], state["waiting"]) == (0, 0)
    page.post("undo", {"who": "a"})
    assert names()


def test_an_item_and_its_audit_wait_for_second_opinions_both_and_count_once(tmp_path: Path) -> None:
    """Ann decided both, from two windows; an audit that was skipped before keeps hers from counting."""
    people = {"a": [["X"]] * 6 + [["Y"]] * 2, "b": [["X"]] * 4 + [["Y"]] * 4, "c": [["X"], ["Y"]] * 4}
    corpus = CrowdCorpus.from_sequences([[f"text{i}"] for i in range(8)], people)
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "out")
    session = Session(Project(tmp_path / "out"), audit_every=1, refit_after=0, rank_after=0)
    names = [name for name, _ in session._order]
    skipped, *audits = [name for name, item in session._order if item.reason == "audit"]
    audit = next(name for name in audits if name.removeprefix("audit ") in names)
    both = {audit, audit.removeprefix("audit ")}
    session.decide("ann", skipped, [])
    for name in both:
        item = session.item(name)
        session.decide("ann", name, [tuple(map(tuple, item["candidates"][0]["spans"]))])
    assert session.state("ann")["waiting"] == 1
    assert not both & {row["item"] for row in session.part("bob", 0, 1000)["items"]}
    assert {row["item"] for row in session.part("bob", 0, 1000, second=True)["items"]} == both
    assert session.part("ann", 0, 1000, second=True)["items"] == []


def test_errors_are_expected_in_an_area_until_all_of_it_was_looked_at(folder: Path) -> None:
    project = Project(folder)
    fit = project.fit(again=False)
    found = find_items(fit.corpus, fit.truth, everything=True)
    area = max(found, key=lambda a: (a.stop - a.start > 1, a.errors))
    first = int(fit.corpus.offsets[area.sequence])
    source = fit.known.source.copy()
    cards = []
    for looked_at in (0, 1, area.stop - area.start):
        source[first + area.start : first + area.start + looked_at] = LOOKED_AT[0]
        cards.append(card_of(project, fit, source))
    assert [card["spans_and_areas"] for card in cards] == [len(found), len(found), len(found) - 1]
    assert cards[0]["expected_errors"] == cards[1]["expected_errors"]
    assert cards[0]["expected_errors"] - cards[2]["expected_errors"] == pytest.approx(area.errors, abs=0.02)


def test_a_refit_is_the_fit_of_finish_whatever_was_fitted_before(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", "robust")
    page = Client(folder, audit_every=0)
    for row in page.get("queue", n=4)["items"]:
        page.post("decide", {"who": "a", "item": row["item"], "readings": [[]]})
        page.session.renew()
    assert not page.session._failed
    again, used = Project(folder).fit(), page.session._fit
    assert (again.known.source > 0).any()
    assert again.truth.proba.tobytes() == used.truth.proba.tobytes()
    assert again.key == used.key


def test_what_an_audit_found_is_not_made_good_by_deciding_it_again(folder: Path) -> None:
    """Else audited units would be better than those they stand for, and the promise too good."""
    project = Project(folder)
    fit = project.fit(again=False)
    first, second = project.next_audits(2, fit)

    def said(unit: Unit, **more: Any) -> Decision:
        kind = project.labels.types[0]
        whole = ((unit.start, unit.stop, kind),)
        base = int(project.corpus.offsets[unit.sequence])
        end = int(project.corpus.offsets[unit.sequence + 1])
        inferred = project.labels.of_sequence(fit.truth.labels[base:end].tolist())
        other = () if whole[0] in inferred else whole
        return Decision(project.corpus.sequence_ids[unit.sequence], unit.start, unit.stop, (other,), **more)

    project.log.add([said(first, audit=True, shown={"unit": first.id}), said(first), said(second)])
    fit = project.fit(again=False)
    assert (fit.known.source > 0).sum() == second.stop - second.start
    ((unit, wrong),) = project.audited(fit)
    assert (project.units[unit].id, wrong) == (first.id, True)
    third = project.next_audits(1, fit)[0]
    assert third.id not in (first.id, second.id)  # what was decided before is not audited
    asked = {(item.area.sequence, item.area.start) for item in project.queue(fit).items}
    assert not asked & {(u.sequence, u.start) for u in (first, second)}


def test_a_skipped_audit_is_asked_again_and_those_behind_it_wait(folder: Path) -> None:
    page = Client(folder)
    first, second = [row["item"] for row in page.get("queue", n=1000)["items"] if row["reason"] == "audit"][:2]
    page.post("decide", {"who": "a", "item": first, "readings": []})
    spans = page.get("item", item=second)["candidates"][0]["spans"]
    state = page.post("decide", {"who": "a", "item": second, "readings": [spans]})["state"]
    assert (state["audited"], state["waiting"]) == (1, 1)
    project = Project(folder)
    fit = project.fit()
    assert project.audited(fit) == []
    promise = project.promise(fit, error=0.1, confidence=0.95)
    assert "1 more do not count until the one that was skipped before them is answered" in promise_words(promise)
    assert "no audit counts" in _written(card_of(project, fit, fit.known.source))
    total = page.get("queue", who="a")["total"]
    assert page.get("queue", who="a", first=total - 1)["items"][0]["item"] == first
    spans = page.get("item", item=first)["candidates"][0]["spans"]
    state = page.post("decide", {"who": "a", "item": first, "readings": [spans]})["state"]
    assert (state["audited"], state["waiting"]) == (2, 0)
    assert len(project.audited(fit)) == 2


def test_skipped_items_come_back_on_search_and_borders_may_leave_the_area(folder: Path) -> None:
    page = Client(folder)
    first = page.get("queue")["items"][0]
    page.post("decide", {"who": "a", "item": first["item"], "readings": []})
    found = page.get("queue", who="a", n=1000)
    assert [row["item"] for row in found["items"]][-1] == first["item"]  # behind the others
    state = page.get("state", who="a")
    assert (state["open"], state["audits"]) == (found["total"] - found["audits"], found["audits"])
    assert state["gain"] == round(next(row["gain"] for row in found["items"] if row["reason"] != "audit"), 2)
    found = page.get("queue", who="a", words=first["words"].split()[0])["items"]
    assert first["item"] in [row["item"] for row in found]
    item = page.get("item", item=first["item"])
    wide = [[0, len(item["tokens"]), item["types"][0]]]
    page.post("decide", {"who": "a", "item": first["item"], "readings": [wide]})
    (decision,) = Project(folder).standing()
    assert (decision.start, decision.stop) == (0, len(item["tokens"]))


def test_a_refit_in_the_background_ranks_anew(folder: Path) -> None:
    page = Client(folder, refit_after=2)
    version = page.get("state")["version"]
    for row in page.get("queue")["items"][:2]:
        spans = page.get("item", item=row["item"])["candidates"][0]["spans"]
        page.post("decide", {"who": "a", "item": row["item"], "readings": [spans]})
    page.session.wait()
    state = page.get("state")
    assert state["version"] > version
    assert state["failed"] == ""
    assert not state["refit"]


@pytest.mark.parametrize(
    "body",
    [
        {"item": "0.0-1", "readings": "x"},
        {"item": "0.0-1", "readings": [[[0, "1", "X"]]]},
        {"item": 7, "readings": []},
        {"item": "0.0-1", "readings": [], "alike": "all"},
        {"item": "0.0-1", "readings": [[]] * 20},
        {"who": "x" * 5000, "item": "0.0-1", "readings": []},
        [1, 2],
    ],
)
def test_nonsense_is_refused(folder: Path, body: Any) -> None:
    page = Client(folder)
    page.post("decide", body, status=400)
    assert Project(folder).log.live() == []


def test_decisions_that_do_not_fit_are_refused(folder: Path) -> None:
    page = Client(folder)
    name = page.get("queue")["items"][0]["item"]
    for spans in ([[0, 99999, "PER"]], [[0, 1, NASTY[0]]], [[-1, 1, "PER"]], [[1, 1, "PER"]]):
        page.post("decide", {"item": name, "readings": [spans]}, status=409)
    page.post("decide", {"item": "no such item", "readings": [[]]}, status=409)
    assert Project(folder).log.live() == []


def test_only_this_machine_with_the_token_and_from_its_own_page(folder: Path) -> None:
    page = Client(folder)
    url = f"/{TOKEN}/api/state"
    assert page.client.get(url, headers={"host": "evil.example:8000"}).status_code == 421
    assert page.client.get(url, headers={"host": "127.0.0.1"}).status_code == 421
    both = [("host", "127.0.0.1:8000"), ("host", "evil.example:8000")]
    assert page.client.get(url, headers=both[:1]).status_code == 200
    assert page.client.get(url, headers=both).status_code == 421
    assert page.client.get("/wrong/api/state").status_code == 404
    assert page.client.get("/").status_code == 404
    body = json.dumps({"item": "x", "readings": []})
    path = f"/{TOKEN}/api/decide"
    simple = {"content-type": "text/plain"}
    assert page.client.post(path, content=body, headers=simple).status_code == 415
    evil = {"content-type": "application/json", "origin": "http://evil.example"}
    assert page.client.post(path, content=body, headers=evil).status_code == 403
    assert page.client.get(url, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert page.client.post(path, json={"item": "x" * (300 << 10)}).status_code == 413
    for answer in (page.client.get(f"/{TOKEN}/"), page.client.get(f"/{TOKEN}/review.js"), page.client.get(url)):
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert not any(name.startswith("access-control") for name in answer.headers)
    assert page.client.get(f"/{TOKEN}/..%2f..%2fserver.py").status_code == 404
    html = page.client.get(f"/{TOKEN}/").text
    assert "http" not in html.replace("http-equiv", "")


def test_every_key_of_the_issue_is_in_the_help() -> None:
    text = (Path(__file__).parents[1] / "src" / "lasca" / "review" / "page" / "review.html").read_text(encoding="utf-8")
    for key in ("Enter", "1", "9", "0", "←", "→", "Shift", "A", "S", "B", "U", "J", "K", "/", "?"):
        assert f"<kbd>{key}</kbd>" in text


def test_twenty_decisions_rank_the_queue_anew_without_a_refit(folder: Path) -> None:
    client = Client(folder, audit_every=0)
    first = client.get("queue")
    for row in first["items"][:RANK_AFTER]:
        inferred = client.session._items[row["item"]].area.readings[0]
        client.post("decide", {"who": "ann", "item": row["item"], "readings": [inferred]})
    client.session.wait()
    state, again = client.get("state"), client.get("queue")
    assert state["version"] == 2
    assert not state["refit"]
    before = [row["item"] for row in first["items"][RANK_AFTER:]]
    after = [row["item"] for row in again["items"]]
    assert set(before) <= set(after) | {row["item"] for row in first["items"]}
    assert [i for i in after if i in before] != [i for i in before if i in after]
    lessons = [d.shown["lesson"] for d in client.session.project.standing()]
    assert all(one["found"] == 0 for one in lessons)


@pytest.mark.parametrize("path", ["/", f"/{TOKEN}", f"/{TOKEN}/api/", "/no/such/page", f"/{TOKEN}/api/state"])
def test_another_host_gets_the_same_refusal_everywhere(folder: Path, path: str) -> None:
    """Redirects and errors named the host that was asked for."""
    answer = Client(folder).client.get(path, headers={"host": "evil.example:8000"}, follow_redirects=False)
    assert answer.status_code == 421
    assert "location" not in answer.headers
    assert "content-security-policy" in answer.headers


def test_names_and_readings_that_are_none_are_refused(folder: Path) -> None:
    page = Client(folder)
    item = page.get("queue")["items"][0]["item"]
    for body in (
        {"who": "\ud800", "readings": [[]]},
        {"who": "ann", "readings": [{}]},
        {"who": "ann", "readings": [""]},
    ):
        data = json.dumps({"item": item} | body).encode()
        answer = page.client.post(f"/{TOKEN}/api/decide", content=data, headers={"content-type": "application/json"})
        assert answer.status_code == 400
    assert page.get("state")["decided"] == 0


def test_the_same_item_named_often_is_decided_once(folder: Path) -> None:
    page = Client(folder)
    item = page.get("queue")["items"][0]["item"]
    answer = page.post("decide", {"who": "ann", "item": item, "readings": [[]], "alike": [item] * 500})
    assert len(answer["ids"]) == 1


def test_names_keep_no_controls_and_marks_of_direction(folder: Path) -> None:
    log = Project(folder).log
    assert log.name_of("\u202eann\x1b[2J\x00\u2066") == "ann[2J"
    assert log.name_of("می\u200cخواهم") == "می\u200cخواهم"  # joiners belong to names
    assert log.name_of("\x1b\u202e") == log.name_of("\u202e \u202e") == "reviewer"
    assert log.name_of(" ann\t\u202e lee\n") == "ann lee"
