"""The review in real headless Chromium: by keyboard alone, killed and taken up again, two windows, axe, any width."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from browser import AXE, chromium, media, missing, resize
from lasca import simulate
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning
from lasca.pipeline.folder import save_truth
from lasca.review.project import Project
from lasca.truth import model_class
from report_cases import NASTY

ENTER, LEFT, RIGHT, ESCAPE = "\ue007", "\ue012", "\ue014", "\ue00c"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


class Server:
    """`lasca review` as a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "lasca", "review", str(folder), "--refit", "0", "--audit", "7", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", line)
        assert found is not None, self.process.communicate()[1]
        self.url = found[0]

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = simulate.demo_crowd("ner")
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(*options: str, place: Path = folder) -> Server:
        running.append(Server(place, *options))
        return running[-1]

    yield start
    for server in running:
        if server.process.poll() is None:
            server.kill()


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(StaleElementReferenceException):  # the page was drawn anew between finding and asking
            found = condition()
            if found:
                return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def decided(browser: Any) -> int:
    """Return how many answers were given: decisions, and those of the audit, which are counted apart."""
    text = browser.find_element("id", "progress").text
    found = re.match(r"([\d,]+) decided", text)
    audited = re.search(r"([\d,]+) audited", text)
    return sum(int(n[1].replace(",", "")) for n in (found, audited) if n) if found else -1


def ready(browser: Any, url: str) -> None:
    browser.get(url)
    until(lambda: decided(browser) >= 0 and browser.find_elements("css selector", "#candidates button"))


def keys(browser: Any, *pressed: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*pressed).perform()


def idle(browser: Any) -> None:
    """Wait until the page takes keys: those pressed while it works are not taken."""
    until(lambda: browser.find_element("id", "card").get_attribute("aria-busy") == "false")


def press(browser: Any, key: str) -> None:
    """Press a key that decides, and wait until it has and the next card is there."""
    idle(browser)
    if key == "2" and len(browser.find_elements("css selector", "#candidates button")) < 2:
        key = ENTER
    before = decided(browser)
    keys(browser, key)
    until(lambda: decided(browser) == before + 1)
    idle(browser)


def test_fifty_decisions_by_keyboard_killed_in_the_middle(
    browser: Any, folder: Path, serve: Callable[..., Server]
) -> None:
    resize(browser, 1440)
    media(browser)
    server = serve()
    ready(browser, server.url)
    assert browser.get_log("browser") == []
    for i in range(23):
        press(browser, (ENTER, "1", "2", "0")[i % 4])
    server.kill()
    assert len(Project(folder).standing()) == 23
    keys(browser, ENTER)  # nobody is there: said, and not counted
    until(lambda: browser.find_element("id", "notice").is_displayed())
    browser.get_log("browser")
    again = serve()
    ready(browser, again.url)
    assert decided(browser) == 23
    for i in range(27):
        press(browser, (ENTER, "1", "2", "0")[i % 4])
    standing = Project(folder).standing()
    assert len(standing) == 50
    assert len({d.shown["item"] for d in standing}) == 50
    assert len(Project(folder).log.live()) == 50


def test_answers_are_sent_at_once(serve: Callable[..., Server]) -> None:
    """On a connection that stays open a body that waits for the receipt of its header comes 40 ms late, always."""
    address = urlsplit(serve().url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port or 0)
    times = []
    for _ in range(20):
        began = time.perf_counter()
        connection.request("GET", f"{address.path}review.css")
        assert connection.getresponse().read()
        times.append(time.perf_counter() - began)
    connection.close()
    assert min(times[3:]) < 0.03


def test_where_nothing_is_marked_a_span_can_be(browser: Any, folder: Path, serve: Callable[..., Server]) -> None:
    resize(browser, 1440)
    ready(browser, serve().url)
    for _ in range(60):
        idle(browser)
        if not browser.find_elements("css selector", "#sentence mark"):
            break
        keys(browser, "j")
    assert not browser.find_elements("css selector", "#sentence mark")
    asked = " ".join(e.text for e in browser.find_elements("css selector", "#sentence bdi.area"))
    keys(browser, RIGHT)
    mark = browser.find_element("css selector", "#sentence mark.active")
    assert " ".join(e.text for e in mark.find_elements("css selector", "bdi")) == asked
    kind = mark.find_element("css selector", "small").text
    press(browser, ENTER)
    (decision,) = Project(folder).standing()
    (((start, stop, made),),) = decision.readings
    assert made == kind
    assert (start, stop) == (decision.start, decision.stop)


def test_every_key_does_what_the_help_says(browser: Any, folder: Path, serve: Callable[..., Server]) -> None:
    resize(browser, 1440)
    ready(browser, serve().url)
    current = "#queue li[aria-current] bdi"
    first = browser.find_element("css selector", current).text
    keys(browser, "j")
    until(lambda: browser.find_elements("css selector", "#queue li")[1].get_attribute("aria-current"))
    keys(browser, "k")
    until(lambda: browser.find_elements("css selector", "#queue li")[0].get_attribute("aria-current"))
    assert browser.find_element("css selector", current).text == first
    keys(browser, "?")
    assert browser.find_element("id", "help").get_attribute("open")
    keys(browser, ESCAPE)
    assert not browser.find_element("id", "help").get_attribute("open")
    assert not browser.find_elements("css selector", ".said")  # blind by default
    keys(browser, "v")
    until(lambda: browser.find_elements("css selector", ".said"))
    keys(browser, "v")
    until(lambda: not browser.find_elements("css selector", ".said"))

    # borders: find an item that proposes a span, and widen it by a token on the right
    def marked() -> str:
        idle(browser)
        found = browser.find_elements("css selector", "#sentence mark.active")
        return str(found[0].text) if found else ""

    for _ in range(40):
        before = marked()
        keys(browser, RIGHT)
        if len(marked()) > len(before) > 0:
            break
        keys(browser, "j")
    assert len(marked()) > len(before) > 0
    keys(browser, LEFT)
    assert marked() == before
    keys(browser, RIGHT)
    press(browser, ENTER)
    (decision,) = Project(folder).standing()
    assert list(map(list, decision.readings[0])) not in decision.shown["candidates"]
    keys(browser, "u")
    until(lambda: decided(browser) == 0)
    for _ in range(20):  # an item of the audit may have one reading only
        idle(browser)
        if len(browser.find_elements("css selector", "#candidates button")) > 1:
            break
        keys(browser, "j")
    press(browser, "a")
    assert len(Project(folder).standing()[0].readings) == 2
    skipped = browser.find_element("css selector", current).text
    keys(browser, "s")
    until(lambda: browser.find_element("css selector", current).text != skipped)
    idle(browser)
    assert decided(browser) == 1
    opened = re.search(r"([\d,]+) open", browser.find_element("id", "progress").text)
    assert opened is not None
    assert browser.find_element("id", "count").text.startswith(f"{opened[1]} to decide")
    word = browser.find_element("css selector", current).text.split()[0]
    keys(browser, "/", "zzz no such word")
    until(lambda: browser.find_element("id", "end").is_displayed())
    keys(browser, ESCAPE)
    browser.find_element("id", "search").clear()
    keys(browser, "/", word, ESCAPE)
    until(lambda: browser.find_elements("css selector", current))
    idle(browser)
    found = browser.find_element("id", "count").text
    press(browser, ENTER)
    assert browser.find_element("id", "count").text != found  # what is left of what was searched for


def test_a_label_that_is_a_letter_is_taken_by_it(browser: Any, tmp_path: Path, serve: Callable[..., Server]) -> None:
    """Answers A to E: A took the first two of them for right."""
    people = {"x": [["A"], ["A"]], "y": [["B"], ["S"]]}
    corpus = CrowdCorpus.from_sequences([["one"], ["two"]], people)
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "letters")
    resize(browser, 1440)
    ready(browser, serve("--audit", "0", place=tmp_path / "letters").url)
    shown = [key.text for key in browser.find_elements("css selector", ".actions kbd") if key.is_displayed()]
    assert not {"A", "B", "S"} & set(shown)
    assert {"U", "V"} <= set(shown)
    press(browser, "a")
    press(browser, "S")
    assert [d.readings for d in Project(tmp_path / "letters").standing()] == [(((0, 1, k),),) for k in "AS"]


def test_the_same_for_all_alike_shows_them_first(browser: Any, tmp_path: Path, serve: Callable[..., Server]) -> None:
    n = 60  # more than the list shows at once: a list that scrolls must not take the key
    tokens = [["Paris", "is", "far", "."] for _ in range(n)]
    people = {"a": [["B-LOC", "O", "O", "O"]] * n, "b": [["B-PER", "O", "O", "O"]] * n}
    corpus = CrowdCorpus.from_sequences(tokens, people)
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "alike")
    resize(browser, 1440)
    ready(browser, serve("--audit", "0", place=tmp_path / "alike").url)
    keys(browser, "b")
    until(lambda: browser.find_element("id", "all").get_attribute("open"))
    assert len(browser.find_elements("css selector", "#others li")) == n - 1
    assert decided(browser) == 0
    keys(browser, ESCAPE)  # no
    until(lambda: not browser.find_element("id", "all").get_attribute("open"))
    assert decided(browser) == 0
    keys(browser, "b")
    until(lambda: browser.find_element("id", "all").get_attribute("open"))
    keys(browser, ENTER)
    until(lambda: decided(browser) == n)
    idle(browser)
    keys(browser, "u")
    until(lambda: decided(browser) == 0)
    idle(browser)
    browser.find_elements("css selector", "#candidates button")[0].click()  # by mouse
    until(lambda: decided(browser) == 1)


def test_two_windows_side_by_side(browser: Any, folder: Path, serve: Callable[..., Server]) -> None:
    resize(browser, 1440)
    server = serve()
    ready(browser, server.url)
    one = browser.current_window_handle
    browser.switch_to.new_window("window")
    two = browser.current_window_handle
    try:
        ready(browser, server.url)
        browser.execute_script(
            "const w = document.getElementById('who'); w.value = 'second'; w.dispatchEvent(new Event('change'))"
        )
        until(lambda: browser.find_elements("css selector", "#candidates button"))
        press(browser, "1")
        browser.switch_to.window(one)
        until(lambda: decided(browser) == 1)  # the other window's decision is seen here, and is not asked again
        until(lambda: "Somebody else" in browser.find_element("id", "notice").text)
        press(browser, "1")
        browser.switch_to.window(two)
        until(lambda: decided(browser) == 2)
        standing = Project(folder).log.standing()
        assert {d.who for s in standing for d in s.opinions} == {"reviewer", "second"}
    finally:
        browser.switch_to.window(two)
        browser.close()
        browser.switch_to.window(one)


def test_texts_that_would_do_harm_are_text(browser: Any, tmp_path: Path, serve: Callable[..., Server]) -> None:
    tokens = [[NASTY[(i + k) % len(NASTY)] for k in range(4)] for i in range(6)]
    people = {
        f"{NASTY[0]}{a}": [[f"B-{NASTY[a]}" if k == i % 3 else "O" for k in range(4)] for i in range(6)]
        for a in range(3)
    }
    corpus = CrowdCorpus.from_sequences(tokens, people)
    with pytest.warns(LascaWarning):  # CoNLL cannot hold such tokens
        save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "nasty")
    resize(browser, 400)
    browser.get("about:blank")
    browser.get_log("browser")
    ready(browser, serve(place=tmp_path / "nasty").url)
    keys(browser, "v")
    until(lambda: browser.find_elements("css selector", ".said"))
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.hacked === undefined")
    assert browser.execute_script("return document.images.length") == 0
    assert NASTY[0] in browser.find_element("id", "main").text
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (400, "dark"), (1440, "light"), (1440, "dark")])
def test_axe_finds_no_fault_and_nothing_overflows(
    browser: Any, serve: Callable[..., Server], width: int, scheme: str
) -> None:
    if not AXE.is_file():
        missing("there is no axe-core")
    resize(browser, width)
    media(browser, scheme)
    ready(browser, serve().url)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    # the policy of the page lets no script in; axe is put in by the driver, outside of it
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    result = browser.execute_async_script("axe.run(document).then(arguments[arguments.length - 1])")
    faults = [f"{v['id']}: {v['nodes'][0]['html'][:150]}" for v in result["violations"] if v["impact"] != "minor"]
    assert faults == []
    media(browser)


def test_words_stand_as_in_the_text_and_items_without_words_by_their_place(
    browser: Any, tmp_path: Path, serve: Callable[..., Server]
) -> None:
    resize(browser, 1440)
    media(browser)
    words = ["A", "34", "-", "year", "-", "old", "man", "."]
    chars = [(0, 1), (2, 4), (4, 5), (5, 9), (9, 10), (10, 13), (14, 17), (17, 18)]
    people = {name: [["O", "B-AGE", *["I-AGE"] * n, *["O"] * (6 - n)]] for name, n in (("a", 4), ("b", 5), ("c", 4))}
    corpus = CrowdCorpus.from_sequences([words], people)
    corpus = replace(corpus, token_chars=np.array(chars, np.int32))
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "text")
    ready(browser, serve(place=tmp_path / "text").url)
    assert browser.find_element("id", "sentence").text.replace("\n", "") == "A 34-year-oldAGE man."
    assert "34-year-old man" in browser.find_element("id", "candidates").text

    corpus = CrowdCorpus.from_sequences([["_", "_"]], {"a": [["1", "2"]], "b": [["1", "1"]], "c": [["2", "1"]]})
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "items")
    ready(browser, serve(place=tmp_path / "items").url)
    assert browser.find_element("id", "sentence").text in ("0, token 1", "0, token 2")
    assert not browser.find_element("css selector", "[data-key='0']").is_displayed()  # every token has a label
    assert {line for line in browser.find_element("id", "candidates").text.split("\n") if line} <= {
        "1 1",
        "2 2",
        "1 2",
        "2 1",
    }
