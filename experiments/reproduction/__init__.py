"""The paper's tables and figures, and ours beside them, measured anew by one command: `make reproduction`.

Measuring (`tweets`, `entities`, `ambiguity`, `clusters`, `beyond`, `figures`) is cut into jobs (`jobs`), which
`run` runs in processes; `pages` puts what they measured into words and tables, `pictures` draws.
"""
