"""Where work runs: threads, processes; a cluster would be one more engine with the same calls."""

from lasca.engine.threads import available_threads, chunks, run_ordered
from lasca.engine.work import Engine, Processes, Threads, Work, added

__all__ = [
    "Engine",
    "Processes",
    "Threads",
    "Work",
    "added",
    "available_threads",
    "chunks",
    "run_ordered",
]
