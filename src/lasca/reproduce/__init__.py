"""The paper's tables and figures, and ours beside them, measured anew by one command.

Measuring (`tweets`, `entities`, `ambiguity`, `clusters`, `beyond`, `figures`) is cut into jobs, which `pool` runs in
processes; `pages` puts what they measured into words, tables and pictures; `whole` is the way from start to end.
"""

from lasca.reproduce.whole import reproduce

__all__ = ["reproduce"]
