"""Write docs/models.md from the registry of truth models: make docs."""

from __future__ import annotations

from pathlib import Path

from lasca.truth import MODEL_NAMES, TruthModel, model_class
from lasca.truth.base import SUPPORTS

HEAD = """# The truth models

Made from the code by `make docs`. `lasca aggregate DATA -m NAME -p PARAMETER=VALUE`, or `lasca.TRUTH_MODELS["NAME"]`.
What a model cannot take (known labels, soft votes, `history=`) it refuses by name; packages add models of their own
([python.md](python.md)).

| name | class | what it is | takes besides labels |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows, parts = [], []
    for name in MODEL_NAMES:
        model = model_class(name)
        takes = ", ".join(SUPPORTS[what].split(":")[0] for what in SUPPORTS if what in model.supports) or "–"
        rows.append(f"| `{name}` | `{model.__name__}` | {model.summary} | {takes} |")
        parts.append(f"### `{name}`\n\n" + parameters(model))
    return HEAD + "\n".join(rows) + "\n\n## Parameters\n\n" + "\n\n".join(parts) + "\n"


def parameters(model: type[TruthModel]) -> str:
    """Return the table of a model's parameters, from where they are declared."""
    rows = ["| parameter | default | what it is | what it may be |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | `{given.default!r}` | {given.doc} | {given.allowed} |" for name, given in model.declared.items()
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    (Path(__file__).parent / "models.md").write_text(page(), encoding="utf-8")
