"""Write docs/models.md from the registry of truth models: make docs."""

from __future__ import annotations

from pathlib import Path

from lasca.truth import MODEL_NAMES, TruthModel, model_class
from lasca.truth.base import SUPPORTS

HERE = Path(__file__).parent
HEAD = """# The truth models

Which one? `robust`, the default, unless you have a reason: it is an average of chain models and reads the text.
`ds` is quick, and enough for labels without sequence. `bsc` is the quick one for spans. `hc` tells which annotators
behave alike. `mv` is the yardstick. The others are there to compare with the literature.

    lasca run DATA -o OUT -m NAME -p PARAMETER=VALUE    # in Python: lasca.TRUTH_MODELS["NAME"]
    lasca compare DATA -m ds -m robust                  # side by side on your data

What each is worth on a real crowd: [all models and settings](models/settings.md), [the bench of crowds](crowds.md). This
page is made from the code by `make docs`; packages add models of their own ([python.md](python.md)).

"""
WHAT = """| name | class | what it is | takes besides labels |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows, parts = [], []
    models = {name: model_class(name) for name in MODEL_NAMES}
    heads = {file.name: file.read_text("utf-8").split("\n", 1)[0] for file in (HERE / "models").glob("*.md")}
    pages = {name: next(file for file, head in heads.items() if f"(`{name}`)" in head) for name in models}
    all_take = [what for what in SUPPORTS if all(what in model.supports for model in models.values())]
    for name, model in models.items():
        takes = ", ".join(_plain(what) for what in SUPPORTS if what in model.supports and what not in all_take) or "–"
        rows.append(f"| `{name}` | [`{model.__name__}`](models/{pages[name]}) | {model.summary} | {takes} |")
        parts.append(f"### `{name}`\n\n" + parameters(model))
    more = f"\n\nAll of them take {' and '.join(map(_plain, all_take))}. What a model cannot take it refuses by name."
    return HEAD + WHAT + "\n".join(rows) + more + "\n\n## Parameters\n\n" + "\n\n".join(parts) + "\n"


def _plain(what: str) -> str:
    """Return what a model takes, without how."""
    return SUPPORTS[what].split(":")[0]


def parameters(model: type[TruthModel]) -> str:
    """Return the table of a model's parameters, from where they are declared."""
    rows = ["| parameter | default | what it is | what it may be |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | `{given.default!r}` | {given.doc} | {given.allowed} |" for name, given in model.declared.items()
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    (HERE / "models.md").write_text(page(), encoding="utf-8")
