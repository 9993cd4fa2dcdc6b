"""One progress display for all steps: how far the whole is, and which step is at work."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "Shares"]

Progress = Callable[[float, str], None]
SHARES = {
    "read": 0.04,
    "truth": 0.5,
    "models": 0.2,
    "ambiguity": 0.08,
    "confusion": 0.01,
    "tagger": 0.35,
    "report": 0.05,
}
"""About how long the steps take, for the progress display."""


class Shares:
    """Turns the progress of a step into the progress of the whole."""

    def __init__(self, progress: Progress | None, compare: bool) -> None:
        self.progress = progress
        self.highest = 0.0
        self.names = [name for name in SHARES if compare or name != "models"]
        self.total = sum(SHARES[name] for name in self.names)

    def of(self, name: str) -> Progress:
        """Return the progress callback of a step."""
        at = self.names.index(name)
        before = sum(SHARES[n] for n in self.names[:at])
        title = f"{at + 1}/{len(self.names)} {name}"

        def report(share: float, words: str = "") -> None:
            if self.progress is not None:
                done = (before + min(max(share, 0.0), 1.0) * SHARES[name]) / self.total
                self.highest = max(self.highest, done)  # some steps only guess how far they are
                self.progress(self.highest, f"{title}: {words}" if words else title)

        return report
