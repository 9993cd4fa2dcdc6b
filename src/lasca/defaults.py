"""What is taken when nothing is said; here so that the command line can name it without loading any model."""

__all__ = ["DEFAULT_MODEL", "DEFAULT_OBJECTIVE"]

DEFAULT_MODEL = "hc-seq"
"""The truth model of `lasca run`, `lasca aggregate` and `lasca demo`."""
DEFAULT_OBJECTIVE = "likelihood"
"""What the tagger of `lasca run` maximises: what measures best on held-out data (docs/tagger.md)."""
