"""Slips at single tokens and with spans: who is wrong where, and what is written instead.

*Single tokens.* An annotator l starts from a label t and keeps it with its precision p_lt; otherwise it writes s ≠ t
drawn from a row W_ts of a matrix with an empty diagonal:

- `uniform`: every other label that occurs in the gold is equally likely;
- `prior`: a label is drawn by its frequency γ in the gold; where that happens to be the right one, any other label
  evenly: W_ts = γ_s + γ_t / (T − 1);
- `annotator`: each annotator has an own row per label, drawn from a Dirichlet with equal parameters `concentration`;
- `shared`: one such row per label, the same for all annotators.

*Entities*: a span missed, a border one token off, another type, a span too many. A span of the labels an annotator
starts from is kept with the annotator's precision. Otherwise one of these befalls it, chosen by weight: `miss` (all its
tokens become O), `short` (its first or last token is left out), `long` (one token more at either side), `type` (another
type that occurs in the gold; which one follows `wrong`). A `short` span of one token is missed; a `long` one with no
free token beside it inside the sequence becomes `short`. On top, single tokens that are O become spans of their own:
for each kept or spoiled span (1 − precision) · false_spans on average, spread evenly over the O tokens.

Hard cases are taken or left whole: tokens that a span of either gold holds together are one case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from lasca.arrays import Bools, Codes, Floats, Ints, ranges
from lasca.errors import ParameterError
from lasca.schemes.arrays import Tags

__all__ = ["SpanLabels", "cases", "label_shares", "off_diagonal", "pick", "right", "spoil", "wrong_rows"]


def label_shares(gold: Codes, n_labels: int) -> Floats:
    """Return how often each label occurs among the tokens that have one."""
    count = np.bincount(gold[gold >= 0], minlength=n_labels).astype(np.float64)
    shares: Floats = count / max(count.sum(), 1.0)
    return shares


def wrong_rows(kind: str, shares: Floats, rng: np.random.Generator, concentration: float = 1.0) -> Floats:
    """Return W (n_labels, n_labels): rows sum to 1 with nothing on the diagonal.

    A label without any alternative (there is only one label) keeps an empty row; nobody can be wrong there.
    """
    n = len(shares)
    used = (shares > 0).astype(np.float64)
    if kind == "prior":
        even = used / max(used.sum() - 1, 1)
        return off_diagonal(shares + shares[:, None] * even)
    if kind == "uniform":
        return off_diagonal(np.tile(used, (n, 1)))
    return off_diagonal(rng.standard_gamma(concentration, (n, n)) * used + 1e-300 * used)


def off_diagonal(weights: Floats) -> Floats:
    """Return the weights without their diagonal, each row divided by its sum (an empty row stays empty)."""
    rows = weights.astype(np.float64)
    np.fill_diagonal(rows, 0.0)
    total = rows.sum(axis=1, keepdims=True)
    result: Floats = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    return result


def pick(rows: Floats, row: npt.NDArray[np.integer], uniform: Floats) -> Codes:
    """Choose one column for each entry of `row`, by the probabilities in that row of `rows` and a number in [0, 1).

    An empty row gives its own number: the label stays.
    """
    n_rows, n_columns = rows.shape
    cumulated = np.cumsum(rows, axis=1)
    cumulated[cumulated >= cumulated[:, -1:] * (1 - 1e-12)] = 1.0  # from the last possible column on
    flat = (cumulated + np.arange(n_rows)[:, None]).ravel()
    drawn = uniform * (1 - 1e-9)
    found = np.searchsorted(flat, row + drawn, side="right") - row.astype(np.int64) * n_columns
    empty = rows.sum(axis=1) == 0
    if empty.any():
        found = np.where(empty[row], row, found)
    drawn_codes: Codes = found.astype(np.int16)
    return drawn_codes


def right(precision: Floats, difficulty: Floats | None, rho: float, rng: np.random.Generator, n: int) -> Bools:
    """Say for n tokens whether an annotator of this precision (per token) is right.

    Independent, or by a Gaussian copula over the tokens' difficulty h: Φ⁻¹(precision) > √ρ h + √(1 − ρ) ε.
    """
    if difficulty is None:
        return rng.random(n) < precision
    noise = np.sqrt(rho) * difficulty + np.sqrt(1 - rho) * rng.standard_normal(n)
    kept: Bools = ndtri(precision) > noise
    return kept


@dataclass(frozen=True, eq=False)
class SpanLabels:
    """IOB2 labels as tables: how spans are read, and the codes per type."""

    read: Tags
    begin_code: Ints
    inside_code: Ints
    outside: int

    @classmethod
    def of(cls, labels: Sequence[str]) -> SpanLabels:
        """Read the labels of a corpus, or say that they are not IOB2."""
        position = {label: i for i, label in enumerate(labels)}
        strange = [x for x in labels if x != "O" and x[:2] not in ("B-", "I-")]
        if strange or "O" not in position:
            raise ParameterError("errors", "spans", "'independent' or 'difficulty' where labels are not O, B-X and I-X")
        types = sorted({label[2:] for label in labels if label != "O"})
        lacking = [p + t for t in types for p in ("B-", "I-") if p + t not in position]
        if lacking:
            raise ParameterError("labels", ", ".join(lacking), "in the corpus for errors='spans' (B- and I- of a type)")
        return cls(
            Tags(("", "") if x == "O" else (x[0], x[2:]) for x in labels),
            np.array([position["B-" + t] for t in types], np.int64),
            np.array([position["I-" + t] for t in types], np.int64),
            position["O"],
        )


def cases(first: Codes, second: Codes, offsets: Ints, tables: SpanLabels) -> tuple[Ints, Bools]:
    """Return for every token the case it belongs to, and for every case whether the two golds differ in it."""
    joined = np.zeros(len(first), np.bool_)
    for codes in (first, second):
        found = tables.read.spans(codes, offsets)
        inside = np.zeros(len(first) + 1, np.int64)
        np.add.at(inside, found.start + 1, 1)  # from the second token of a span …
        np.add.at(inside, found.stop, -1)  # … to its last
        joined |= np.cumsum(inside)[:-1] > 0
    case = np.cumsum(~joined) - 1
    differ = np.zeros(int(case[-1]) + 1 if len(case) else 0, np.bool_)
    differ[case[(first != second) & (first >= 0) & (second >= 0)]] = True
    return case, differ


def spoil(
    codes: Codes,
    offsets: Ints,
    tables: SpanLabels,
    *,
    precision: Floats,
    weights: Mapping[str, float],
    wrong: Floats,
    false_spans: float,
    rng: np.random.Generator,
) -> Codes:
    """Return what one annotator writes; `precision` is per label (the B- of a span counts), `wrong` (types, types)."""
    found = tables.read.spans(codes, offsets)
    start, end, kind = found.start, found.stop, found.kind
    n = len(start)
    names = list(weights)
    share = np.array([weights[name] for name in names], np.float64)
    kept = rng.random(n) < precision[tables.begin_code[kind]]
    drawn = rng.choice(len(names), n, p=share / share.sum())
    befalls = {name: ~kept & (drawn == i) for i, name in enumerate(names)}
    nobody = np.zeros(n, np.bool_)
    new_start, new_end = _move(
        start, end, offsets, befalls.get("short", nobody), befalls.get("long", nobody), rng.random(n) < 0.5
    )
    kind = np.where(befalls.get("type", nobody), pick(wrong, kind, rng.random(n)), kind)
    stays = ~befalls.get("miss", nobody) & (new_end > new_start)
    result = _write(codes, new_start[stays], new_end[stays], kind[stays], tables)
    return _add_false(result, n, float(np.mean(1 - precision)) * false_spans, wrong, tables, rng)


def _move(start: Ints, end: Ints, offsets: Ints, short: Bools, long: Bools, at_front: Bools) -> tuple[Ints, Ints]:
    """Move one border by one token; a token is free if it lies in the sequence and in no span, not even a grown one."""
    sequence = np.searchsorted(offsets, start, side="right") - 1
    first, last = offsets[sequence], offsets[sequence + 1]
    upper = np.minimum(np.append(start[1:], offsets[-1]), last)[: len(start)]
    no_room = start - 1 < np.maximum(np.concatenate(([0], end))[:-1], first)
    grows_right = long & (end < upper) & (~at_front | no_room)
    grown = end + grows_right
    grows_left = long & ~grows_right & (start - 1 >= np.maximum(np.concatenate(([0], grown))[:-1], first))
    shrinks = short | (long & ~grows_left & ~grows_right)
    return start - grows_left + (shrinks & at_front), grown - (shrinks & ~at_front)


def _write(codes: Codes, start: Ints, end: Ints, kind: Ints, tables: SpanLabels) -> Codes:
    result = np.where(codes >= 0, tables.outside, -1).astype(np.int16)
    result[ranges(start, end)] = np.repeat(tables.inside_code[kind], end - start)
    result[start] = tables.begin_code[kind]
    return result


def _add_false(
    codes: Codes, n_spans: int, rate: float, wrong: Floats, tables: SpanLabels, rng: np.random.Generator
) -> Codes:
    free = np.flatnonzero(codes == tables.outside)
    chance = min(1.0, n_spans * rate / max(len(free), 1))
    chosen = free[rng.random(len(free)) < chance]
    possible = np.flatnonzero(wrong.sum(axis=0) > 0)
    if len(chosen) and len(possible):
        codes[chosen] = tables.begin_code[rng.choice(possible, len(chosen))]
    return codes
