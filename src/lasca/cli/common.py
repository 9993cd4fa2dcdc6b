"""What commands say: to a terminal, to a pipe, to machines; progress, and text that cannot do harm.

Progress in logs and pipes is plain lines, for steps of more than a second, and now and then within long ones.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lasca.errors import excerpt

if TYPE_CHECKING:
    from lasca.corpus import LoadReport

__all__ = [
    "Lines", "at_work", "command", "err", "lines", "out", "print_json", "progress_bar", "say", "show_load_report",
    "show_table", "show_warnings",
]  # fmt: skip

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
FIRST = 1.0  # seconds a step takes before it is worth a line
AGAIN = 10.0  # seconds to the next line of the same step; more when the whole takes long
TICK = 0.2


def command(*parts: object) -> str:
    """Write a command of LASCA so that it can be pasted: with quotes where a path needs them."""
    return shlex.join(["lasca", *map(str, parts)])


def safe(text: object, limit: int = 60) -> Text:
    """Show text from outside: no terminal escapes, no markup, not too long."""
    return Text(excerpt(str(text), limit))


COMPILING = "compiling once, later runs start at once"


@contextmanager
def progress_bar(title: str) -> Iterator[Any]:
    """Give a callback (share, words) that moves a bar on stderr; where that is no terminal, lines are written there."""
    if not err.is_terminal:
        with (
            lines(title, say) as note,
            compiling(lambda busy: say(f"{title} – {COMPILING}") if busy else None, once=True),
        ):
            yield note
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(escape(title), total=1.0, words="")

        def report(share: float, words: str = "") -> None:
            bar.update(task, completed=min(share, 1.0), words=escape(words))

        with compiling(lambda busy: bar.update(task, description=escape(f"{title} – {COMPILING}" if busy else title))):
            yield report


@contextmanager
def compiling(tell: Callable[[bool], object], *, once: bool = False) -> Iterator[None]:
    """Tell with True when a kernel begins to be compiled, with False when it is done; `once`: the first time only.

    A first run spends most of its time there (benchmarks/bench_cold.py), and should say so.
    """
    from numba.core import event

    class Watch(event.Listener):
        depth, told = 0, False

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth == 1 and not (once and self.told):
                self.told = True
                tell(True)

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                tell(False)

    with event.install_listener("numba:compile", Watch()):
        yield


@contextmanager
def at_work(title: str) -> Iterator[None]:
    """Show what is being done where nobody knows how far it is."""
    with err.status(escape(title)) if err.is_terminal else lines(title, say):
        yield


def say(text: str, style: str | None = None) -> None:
    """Write a line on stderr as it is: no markup, no terminal escapes, broken by nobody."""
    err.print(Text(excerpt(text, 2000)), style=style, soft_wrap=True)


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, most: int | None = None, where: str = ""
) -> None:
    """Print a table: numbers to the right, text from outside made harmless; at `most` so many rows."""
    left = 0 if most is None else max(len(rows) - most, 0)
    note = f"… and {left:,} more{where}" if left else None
    rows = rows[:most]
    numeric = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(columns))]
    table = Table(
        title=escape(title), title_justify="left", caption=note, caption_justify="left", header_style="bold",
        show_header=any(columns),
    )  # fmt: skip
    for name, is_number in zip(columns, numeric):
        table.add_column(escape(excerpt(name)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    out.print(table)


def _cell(value: Any) -> Text:
    if value is None:
        return Text("–")
    if isinstance(value, float):
        return Text(f"{value:.3f}")
    if isinstance(value, int):
        return Text(f"{value:,}")
    return value if isinstance(value, Text) else safe(value)


def show_load_report(report: LoadReport) -> None:
    """Say on stderr what the reader did that the user may not expect."""
    for note in report.notes:
        say("note: " + excerpt(note, 700), "cyan")
    for what, n, example in report.in_words():
        say(f"{what}: {n:,}" + (f" – for example {excerpt(example, 160)}" if example else ""), "dim")


def show_warnings(warnings: Iterable[str], of: str = "") -> None:
    """Say on stderr what a model, or a run, warns of."""
    for warning in warnings:
        say(f"warning{of}: {excerpt(warning, 300)}", "yellow")


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout; escaped where the encoding of stdout may lack a character."""
    escaped = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=escaped, allow_nan=False, default=_jsonable) + "\n")


def _jsonable(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


class Lines:
    """What is being done, and when to say so next."""

    def __init__(self, title: str, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.title, self.write, self.clock = title, write, clock
        self.share, self.words, self.step = 0.0, "", ""
        self.began = clock()
        self.due = self.began + FIRST

    def report(self, share: float, words: str = "") -> None:
        """Take note of how far it is; a step is what stands before a colon, whatever the numbers in it."""
        step = re.sub(r"[\d.,]+", "", words.partition(":")[0])
        if step != self.step:
            self.due = min(self.due, self.clock() + FIRST)
        self.share, self.words, self.step = min(share, 1.0), words, step

    def tick(self) -> None:
        """Write a line if it is time."""
        now = self.clock()
        if now >= self.due:
            self.due = now + max(AGAIN, (now - self.began) / 20)
            share = f"{100 * self.share:.0f} %" if self.share > 0 else ""
            said = " – ".join(part for part in (excerpt(self.title), share, excerpt(self.words, 160)) if part)
            self.write(f"{said} ({now - self.began:.0f} s)")


@contextmanager
def lines(title: str, write: Callable[[str], None]) -> Iterator[Callable[..., None]]:
    """Give a callback (share, words); what it is told is written as lines when they are due."""
    shown, stop = Lines(title, write), threading.Event()

    def watch() -> None:
        while not stop.wait(TICK):
            shown.tick()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield shown.report
    finally:
        stop.set()
        thread.join()
