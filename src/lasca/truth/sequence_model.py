"""The old place of starts, for `robust` while it is being changed."""

from lasca.truth.starts import start_evidence, trust

__all__ = ["start_evidence", "trust"]
