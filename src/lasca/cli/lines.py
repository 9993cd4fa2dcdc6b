"""Progress in logs and pipes: plain lines, for steps of more than a second, and now and then within long ones."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lasca.errors import excerpt

__all__ = ["Lines", "lines"]

FIRST = 1.0  # seconds a step takes before it is worth a line
AGAIN = 10.0  # seconds to the next line of the same step; more when the whole takes long
TICK = 0.2


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
