"""A plug-in of pytest: which lines of the package and of the tests each test runs, and its CPU seconds.

`scripts/mutants.py map` runs the suite with it (`-p tests_seen`, SEEN = the folder to write to), and so does `make
coverage`, where coverage.py counts already. Each process has its `coverage.NAME` (a context for every test) and
`seconds.NAME.json`, which are written as it goes: a process that is killed, as pytest-xdist does to those that take
more than ten seconds to end, loses no more than its last test. Python forgets whom it tells about lines when that one
fails: it is told anew after each test, and `lost.NAME.txt` says which test it was.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest
from numba.core import event

FOLDER = Path(os.environ["SEEN"]).resolve()
NAME = os.environ.get("SEEN_NAME") or os.environ.get("PYTEST_XDIST_WORKER", "main")
SECONDS: dict[str, float] = {}
LONGEST = 20
"""Seconds of user CPU after which a test is stopped where only the map is wanted: it is too slow for a mutant."""


def counter() -> tuple[coverage.Coverage, bool]:
    """Return who counts, and whether it is for the map alone."""
    running = coverage.Coverage.current()
    if running is not None:
        return running, False
    own = coverage.Coverage(
        config_file=False,  # which is about `make coverage`
        data_file=str(FOLDER / f"coverage.{NAME}"),
        source=[str(Path("src").resolve()), str(Path("tests").resolve())],
    )
    own.start()
    return own, True


class Compiling(event.TimingListener):  # type: ignore[misc]
    """The CPU seconds that went into compiling kernels: a test does not take them when it is run again."""

    seconds = 0.0

    def on_start(self, event: Any) -> None:
        """Note when the first of nested kernels begins."""
        if self._depth == 0:
            self.begin = time.process_time()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Add up."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.process_time() - self.begin


COMPILING = Compiling()
event.register("numba:compile", COMPILING)
COVERAGE, MAP_ALONE = counter()
TRACE = sys.gettrace()


def stop(*_: Any) -> None:
    """Stop a test."""
    pytest.fail("too slow")


def count_on(test: str) -> None:
    """Go on counting where Python has forgotten it, and note after which test that was."""
    if sys.gettrace() is not TRACE:
        with (FOLDER / f"lost.{NAME}.txt").open("a", encoding="utf-8") as file:
            file.write(f"{test}: {sys.gettrace()}\n")
        sys.settrace(TRACE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> Iterator[Any]:
    """Say whose lines they are from now on."""
    COVERAGE.switch_context(item.nodeid)
    if MAP_ALONE:
        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    begin = time.process_time() - COMPILING.seconds
    try:
        return (yield)
    finally:
        if MAP_ALONE:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        count_on(item.nodeid)
        SECONDS[item.nodeid] = SECONDS.get(item.nodeid, 0.0) + time.process_time() - COMPILING.seconds - begin
        if nextitem is None or nextitem.path != item.path:
            keep()


def keep() -> None:
    """Write what was seen so far."""
    COVERAGE.save()
    if not MAP_ALONE and not (FOLDER / f"coverage.{NAME}").exists():
        os.link(COVERAGE.get_data().data_filename(), FOLDER / f"coverage.{NAME}")
    (FOLDER / f"seconds.{NAME}.json").write_text(json.dumps(SECONDS), encoding="utf-8")


def pytest_runtest_logreport(report: Any) -> None:
    """Leave out what was skipped or did not pass."""
    if not report.passed:
        SECONDS[report.nodeid] = 1000.0
