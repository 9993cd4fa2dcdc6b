"""Where work runs: the threads of this process (a Dask cluster will be a second engine with the same calls)."""

from lasca.engine.threads import available_threads, chunks, run_ordered, run_summed

__all__ = ["available_threads", "chunks", "run_ordered", "run_summed"]
