"""What the frozen records share: copies and pickles (LASCA itself stores none), frames, cards for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from types import MappingProxyType
from typing import Any

from lasca.errors import excerpt
from lasca.estimator import check_choice

__all__ = ["Record", "card", "frame"]

WIDEST = 60
"""Characters of a name that a card shows."""


class Record:
    """The base of frozen dataclasses whose mappings are read-only views: these alone cannot be pickled or copied."""

    def __reduce__(self) -> tuple[Any, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return _made, (type(self), {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in values.items()})


def _made(cls: type[Record], values: dict[str, Any]) -> Record:
    return cls(**values)


def frame(table: Any, backend: str) -> Any:
    """Return an Arrow table as a frame of the wanted library: "pyarrow", "pandas" or "polars"."""
    check_choice("backend", backend, ("pyarrow", "pandas", "polars"))
    if backend == "pyarrow":
        return table
    import narwhals as nw

    made = nw.from_native(table)
    return made.to_pandas() if backend == "pandas" else made.to_polars()


def card(title: str, facts: Mapping[str, object], rows: Sequence[Mapping[str, object]] = (), more: int = 0) -> str:
    """Return HTML for notebooks: a table of facts, then one of rows with their keys as a header, and how many are left.

    Names come from files: they are cut, escaped and kept from turning the text around them.
    """
    lines = [f"<b>{_shown(title)}</b>", "<table>"]
    lines += [f'<tr><th style="text-align:left">{_shown(k)}</th><td>{_shown(v)}</td></tr>' for k, v in facts.items()]
    lines.append("</table>")
    if rows:
        lines.append(f"<table><tr>{''.join(f'<th>{_shown(key)}</th>' for key in rows[0])}</tr>")
        lines += [f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in row.values())}</tr>" for row in rows]
        lines.append(f"</table>{f'<i>and {more:,} more</i>' if more > 0 else ''}")
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"<bdi>{escape(excerpt(str(value), WIDEST))}</bdi>"
