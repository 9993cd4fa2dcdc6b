"""Where work runs: the threads of this process (a Dask cluster will be a second engine with the same two calls)."""

from lasca.engine.threads import available_threads, chunks, run_ordered

__all__ = ["available_threads", "chunks", "run_ordered"]
