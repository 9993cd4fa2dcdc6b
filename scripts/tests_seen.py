"""A plug-in of pytest: which lines of the package and of the tests each test runs, and its CPU seconds.

`scripts/mutants.py map` runs the suite with it (`-p tests_seen`, SEEN = the folder to write to). Each process writes
`coverage.NAME` (a context for every test; coverage.py) and `seconds.NAME.json`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest
from numba.core import event

FOLDER = Path(os.environ["SEEN"])
NAME = os.environ["SEEN_NAME"]
COVERAGE = coverage.Coverage(
    data_file=str(FOLDER / f"coverage.{NAME}"), source=[str(Path("src").resolve()), str(Path("tests").resolve())]
)
SECONDS: dict[str, float] = {}
LONGEST = 20
"""Seconds of user CPU after which a test is stopped: it is too slow to be run for a mutant."""


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
COVERAGE.start()


def stop(*_: Any) -> None:
    """Stop a test."""
    pytest.fail("too slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[Any]:
    """Say whose lines they are from now on."""
    COVERAGE.switch_context(item.nodeid)
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    begin = time.process_time() - COMPILING.seconds
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        SECONDS[item.nodeid] = SECONDS.get(item.nodeid, 0.0) + time.process_time() - COMPILING.seconds - begin


def pytest_runtest_logreport(report: Any) -> None:
    """Leave out what was skipped or did not pass."""
    if not report.passed:
        SECONDS[report.nodeid] = 1000.0


def pytest_sessionfinish() -> None:
    """Write all of it."""
    COVERAGE.stop()
    COVERAGE.save()
    (FOLDER / f"seconds.{NAME}.json").write_text(json.dumps(SECONDS), encoding="utf-8")
