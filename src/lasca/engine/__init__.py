"""Where work runs: in threads, or on a cluster; another place would be one more engine with the same calls."""

from lasca.engine.work import Engine, Threads, Work, added, available_threads, chunks, run_ordered

__all__ = ["Engine", "Threads", "Work", "added", "available_threads", "chunks", "run_ordered"]
