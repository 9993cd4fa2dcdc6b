"""Write docs/formats.md from the readers' own docstrings and options (make docs); a test says when it is out of date."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from lasca.formats import READERS, WRITERS

HEAD = """# Formats

This page is made from the readers' own words by `make docs`.

`lasca.read(path)` (or `lasca inspect PATH`) detects the format and says which it took; `format="NAME"` (or `--format`)
names it. Options go to the reader as keywords, or on the command line as `--reader NAME=VALUE`.

Rules for all readers: missing, O and skipped are three different things. A token takes the export's own tokenisation
where there is one. Offsets are read in the unit (code points, UTF-16, graphemes) that fits the quoted text. Tag schemes
are detected; `repair=True` makes illegal tags legal and counts them, `scheme="BIOES"` converts. Golds, curators and models
are roles, not ordinary annotators. The order of files and rows never changes the result. What is left out, changed or
guessed is counted in `corpus.load_report` with examples. Any bytes whatever give a corpus or one clear error with file and
line. In `labels.csv`-like tables for people a cell that a spreadsheet would take for a formula gets a quote before it; data
files (`table`, `mace`) are written as they are, so that they read back the same.

Written: {writers}. All of them are for `lasca convert --to NAME`.
"""


def page() -> str:
    """Return the text of docs/formats.md."""
    parts = [HEAD.format(writers=", ".join(f"`{name}`" for name in WRITERS))]
    for name, reader in READERS.items():
        module = import_module(reader.module)
        parts.append(f"## {name}\n\n{inspect.getdoc(module)}\n")
        options = [p for p in inspect.signature(module.read).parameters.values() if p.name != "files"]
        if options:
            parts.append("Options: " + ", ".join(f"`{p.name}={p.default!r}`" for p in options) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("formats.md").write_text(page(), encoding="utf-8")
