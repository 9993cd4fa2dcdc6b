"""CPU time and memory of a piece of work."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

__all__ = ["Peak"]

BEAT = 0.02


class Peak:
    """Measures CPU seconds, and by how many megabytes this process grew at most, while a block runs.

    A thread looks at the resident memory fifty times a second; nan where the system does not tell it.
    """

    def __enter__(self) -> Self:
        self._before = self._highest = resident()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        self._cpu = time.process_time()
        return self

    def _look(self) -> None:
        while not self._over.wait(BEAT):
            self._highest = max(self._highest, resident())

    def __exit__(self, *error: object) -> None:
        self.cpu = time.process_time() - self._cpu
        self._over.set()
        self._watch.join()
        self.megabytes = (max(self._highest, resident()) - self._before) / 1e6


def resident() -> float:
    """Return the resident memory of this process in bytes, nan if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    import resource

    return float(pages * resource.getpagesize())
