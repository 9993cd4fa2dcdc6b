"""Write docs/models.md from the registry of truth models: make docs."""

from __future__ import annotations

from pathlib import Path

from lasca.truth import MODEL_NAMES, model_class
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
        params = ", ".join(f"`{key}={value!r}`" for key, value in model().get_params().items())
        parts.append(f"- `{name}`: {params}")
    return (
        HEAD
        + "\n".join(rows)
        + "\n\n## Parameters and what they are when nothing is said\n\n"
        + "\n".join(parts)
        + "\n"
    )


if __name__ == "__main__":
    (Path(__file__).parent / "models.md").write_text(page(), encoding="utf-8")
