"""A long table into the arrays of a corpus, without a Python loop over rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lasca.corpus import SoftVotes
from lasca.errors import FormatError, excerpt
from lasca.formats.base import natural_key
from lasca.formats.names import speaker
from lasca.formats.tabular import NAN, as_strings

__all__ = ["Arrays", "arrange", "further_columns"]

Codes = npt.NDArray[np.int64]
MakeError = Callable[..., FormatError]
ROLES = ("annotator", "model", "gold")
SUM = 1e-3  # how far the probabilities of one token may be from 1: rounded numbers


@dataclass
class Arrays:
    """The arrays of a corpus, and what the load report says."""

    tokens: Any
    offsets: Codes
    sequence_ids: list[str]
    token_of_row: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    labels: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    token: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    annotator: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    label: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    golds: dict[str, npt.NDArray[np.int16]] = field(default_factory=dict)
    soft: SoftVotes | None = None
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def count(self, kind: str, n: int, example: str | None = None) -> None:
        """Count something for the report."""
        if n:
            self.counts[kind] = self.counts.get(kind, 0) + n
            if example is not None:
                self.examples[kind] = (*self.examples.get(kind, ()), excerpt(example, 200))


def arrange(
    table: Any, names: Mapping[str, str], golds: Sequence[str], error: MakeError, certain: bool = False
) -> Arrays:
    """Sort the rows into sequences, tokens and annotations.

    A column `probability` that adds up to 1 for every token and annotator gives soft votes. With `certain` it may also
    say of single labels how sure they are: the rest is shared evenly by all others.
    """
    sequence, position = _places(table, names, error)
    arrays, token_of_row = _tokens(table, names, sequence, position, error)
    if names.get("task") == names.get("token"):
        arrays.notes.append("These are labels of whole texts: each text is a sequence of one token.")
    arrays.token_of_row = token_of_row
    who, label = _Column(table, names["annotator"]), _Column(table, names["label"])
    for column in (who, label):
        broken = next((i for i, value in enumerate(column.values) if "\n" in value), None)
        if broken is not None:
            row = int(np.argmax(column.codes == broken))
            raise error(
                "a line break inside a label or a name", row, got=column.values[broken], hint="Check the quotes"
            )
    arrays.count("labels nan, taken as missing", int(label.forget(NAN)))
    role = _roles(table, names, who, error)
    unnamed = np.flatnonzero(who.empty & ~label.empty)
    if len(unnamed):
        raise error("a label without an annotator", int(unnamed[0]), got=label.at(int(unnamed[0])))
    arrays.count("rows without label", int((label.empty & ~who.empty).sum()))
    given = np.flatnonzero(~label.empty)
    sure = _sure(table, names, given, token_of_row, who, role, certain, arrays, error)
    doubted = given[:0] if sure is None else given[(sure[given] < 1) & (role[given] < 2)]
    given = np.setdiff1d(given, doubted)
    if len(given):
        given = _last_only(table, names, arrays, given, token_of_row, who, label, role, error)
    gold_columns = {name: _Column(table, name) for name in golds}
    _labels(arrays, label, gold_columns, np.concatenate([given, doubted]))
    _annotations(arrays, given, token_of_row, who, label, role)
    if sure is not None and len(doubted):
        _soft(arrays, doubted, token_of_row, who, label, sure)
    for name, column in gold_columns.items():
        rows = np.flatnonzero(~column.empty)
        _gold(arrays, name, token_of_row[rows], column.codes_in(arrays.labels)[rows], rows, error)
    return arrays


def further_columns(table: Any, names: Sequence[str], arrays: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns that are metadata of sequences and of tokens; what is neither is counted."""
    metadata: dict[str, Any] = {}
    token_metadata: dict[str, Any] = {}
    of_token = arrays.token_of_row
    n_tokens = int(arrays.offsets[-1])
    of_sequence = np.repeat(np.arange(len(arrays.sequence_ids)), np.diff(arrays.offsets))[of_token]
    for name in names:
        try:
            column = _Column(table, name)
        except FormatError:
            arrays.count("columns left out", 1, f"{name}: its cells are no text")
            continue
        for place, n, found in (
            (of_sequence, len(arrays.sequence_ids), metadata),
            (of_token, n_tokens, token_metadata),
        ):
            value = _one_each(column, place, n)
            if value is not None:
                found[name] = value
                arrays.count("columns read as metadata", 1, name)
                break
        else:
            arrays.count("columns left out", 1, f"{name}: it says different things of one token")
    return metadata, token_metadata


def _one_each(column: _Column, place: Codes, n: int) -> list[str] | None:
    """Return the one value of every place ("" where all are empty), or None if a place has several."""
    chosen = np.full(n, -1, np.int64)
    rows = np.flatnonzero(~column.empty)
    chosen[place[rows]] = column.codes[rows]
    if (chosen[place[rows]] != column.codes[rows]).any():
        return None
    values = [*column.values, ""]
    return [values[code] for code in chosen.tolist()]


class _Column:
    """A column of strings as codes of its distinct values; null and "" are empty."""

    def __init__(self, table: Any, name: str) -> None:
        encoded = as_strings(table.column(name)).combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], pa.large_string())
        encoded = pc.fill_null(encoded, "").dictionary_encode()
        self.values: list[str] = encoded.dictionary.to_pylist()
        self.codes: Codes = np.asarray(encoded.indices, dtype=np.int64)
        blank = np.array([not value for value in self.values], np.bool_)
        self.empty: npt.NDArray[np.bool_] = blank[self.codes] if len(self.values) else np.zeros(0, np.bool_)

    def at(self, row: int) -> str:
        """Return the value of a row."""
        return self.values[int(self.codes[row])]

    def forget(self, names: Sequence[str]) -> int:
        """Take these values for empty; return how many rows hold one."""
        known = np.isin(self.codes, [i for i, value in enumerate(self.values) if value in names])
        self.empty = self.empty | known
        return int(known.sum())

    def codes_in(self, names: Sequence[str]) -> Codes:
        """Return the code of each row's value in a list of names, -1 where it is not among them."""
        position = {name: i for i, name in enumerate(names)}
        table = np.array([position.get(value, -1) for value in self.values], np.int64)
        return table[self.codes] if len(self.values) else np.zeros(0, np.int64)


def _places(table: Any, names: Mapping[str, str], error: MakeError) -> tuple[_Column, Codes]:
    """Return the sequence and the position of every row."""
    if "sequence" in names:
        sequence = _Column(table, names["sequence"])
        if sequence.empty.any():
            raise error("a row without a sequence", int(np.argmax(sequence.empty)))
        if "position" not in names:
            return sequence, _running(sequence.codes, _Column(table, names["annotator"]).codes)
        return sequence, _positions(_Column(table, names["position"]), error)
    task = _Column(table, names["task"])
    if task.empty.any():
        raise error("a row without a task", int(np.argmax(task.empty)))
    parts = [re.fullmatch(r"(.*):([0-9]{1,15})", value, re.DOTALL) for value in task.values]
    if not all(parts) or names["task"] == names.get("token"):  # items of their own, not tokens of sequences
        return task, np.zeros(len(task.codes), np.int64)
    ids = sorted({match[1] for match in parts if match is not None})
    code = {id: i for i, id in enumerate(ids)}
    position = np.array([int(match[2]) for match in parts if match is not None], np.int64)[task.codes]
    of_task = np.array([code[match[1]] for match in parts if match is not None], np.int64)
    task.values, task.codes = ids, of_task[task.codes]
    return task, position


def _running(sequence: Codes, who: Codes) -> Codes:
    """Return the number of every row among those of its annotator in its sequence."""
    order = np.lexsort((np.arange(len(who)), who, sequence))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(sequence[order]) != 0) | (np.diff(who[order]) != 0)
    starts = np.flatnonzero(new)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return position


def _positions(column: _Column, error: MakeError) -> Codes:
    numbers = np.full(len(column.values), -1, np.int64)
    for i, value in enumerate(column.values):
        match = re.fullmatch(r"\s*([0-9]{1,15})(?:\.0*)?\s*", value)
        if match is None:
            raise error("a position must be a whole number of at least 0", int(np.argmax(column.codes == i)), got=value)
        numbers[i] = int(match[1])
    return numbers[column.codes]


def _tokens(
    table: Any, names: Mapping[str, str], sequence: _Column, position: Codes, error: MakeError
) -> tuple[Arrays, Codes]:
    """Return the tokens in order (sequences by id, positions as numbers) and the token of every row."""
    ids = sorted(sequence.values, key=lambda id: (natural_key(id), id))
    place = sequence.codes_in(ids)
    order = _sorted(place, position)
    sorted_place, sorted_position = place[order], position[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(sorted_place) != 0) | (np.diff(sorted_position) != 0)
    token_of_row = np.empty(len(order), np.int64)
    token_of_row[order] = np.cumsum(new) - 1
    first_row = order[new]
    lengths = np.bincount(sorted_place[new], minlength=len(ids))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    arrays = Arrays(None, offsets, ids)
    mentioned = sorted_position[new]
    holes = mentioned[offsets[1:] - 1] - mentioned[offsets[:-1]] + 1 - lengths
    if holes.any():
        arrays.count("positions nobody mentions", int(holes.sum()), f"sequence {ids[int(np.argmax(holes > 0))]}")
    if "token" not in names:
        arrays.tokens = ["_"] * len(first_row)
        arrays.notes.append("There is no column of tokens: every token is written as _.")
        return arrays, token_of_row
    words = _Column(table, names["token"])
    chosen = words.codes[first_row]
    other = np.flatnonzero(words.codes != chosen[token_of_row])
    if len(other):
        row = int(other[0])
        raise error(
            f"the token is {excerpt(words.values[chosen[token_of_row[row]]])!r} elsewhere "
            f"(sequence {excerpt(sequence.at(row))!r}, position {position[row]})",
            row,
            got=words.at(row),
            hint="One sequence and position must stand for one token",
        )
    arrays.tokens = pa.array(words.values, pa.large_string()).take(pa.array(chosen))
    return arrays, token_of_row


def _sorted(*keys: Codes) -> Codes:
    """Return the order by several keys, first key first; fast where they fit one number, faster where sorted."""
    joined = np.zeros(len(keys[0]), np.int64)
    room = 1
    for key in keys:
        size = int(key.max(initial=0)) + 1
        room *= size
        if room >= 2**62:
            return np.lexsort(keys[::-1])
        joined = joined * size + key
    return np.argsort(joined, kind="stable")


def _roles(table: Any, names: Mapping[str, str], who: _Column, error: MakeError) -> Codes:
    """Return the role of every row: as its column says, or by the name of who speaks there."""
    if "role" not in names:
        return np.array([ROLES.index(speaker(name)) for name in who.values] or [0], np.int64)[who.codes]
    column = _Column(table, names["role"])
    codes = np.where(column.empty, 0, column.codes_in(ROLES))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise error(f"a role must be one of {', '.join(ROLES)}", row, got=column.at(row))
    return codes


def _last_only(
    table: Any,
    names: Mapping[str, str],
    arrays: Arrays,
    rows: Codes,
    token: Codes,
    who: _Column,
    label: _Column,
    role: Codes,
    error: MakeError,
) -> Codes:
    """Keep one row per token, annotator and role: the last by time; without time they must agree."""
    time = np.zeros(len(token), np.int64)
    if "time" in names:
        time = _ranks(table.column(names["time"]))
    values = label.codes_in(sorted(label.values))
    order = rows[_sorted(token[rows], role[rows], who.codes[rows], time[rows], values[rows])]
    same = np.zeros(len(order), np.bool_)
    same[:-1] = (np.diff(token[order]) == 0) & (np.diff(role[order]) == 0) & (np.diff(who.codes[order]) == 0)
    if not same.any():
        return rows
    following = np.append(order[1:], order[-1:])
    differs = same & (label.codes[order] != label.codes[following])
    clash = differs & (time[order] == time[following])
    if clash.any():
        at = int(np.argmax(clash))
        first, second = sorted((int(order[at]), int(following[at])))
        raise error(
            f"annotator {excerpt(who.at(first))!r} labelled this token twice: {excerpt(label.at(first))!r} and "
            f"{excerpt(label.at(second))!r}",
            second,
            hint="Keep one, or add a column `time`: the last one then counts",
        )
    arrays.count("superseded", int(differs.sum()))
    arrays.count("repeated", int((same & ~differs).sum()))
    return order[~same]


def _ranks(column: Any) -> Codes:
    """Return numbers that sort like the values; numbers in text sort as numbers, nulls first."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.fill_null(column, "").to_pylist()
        unique = sorted(set(texts), key=lambda text: (natural_key(text), text))
        place = {text: i for i, text in enumerate(unique)}
        return np.array([place[text] for text in texts], np.int64)
    try:
        unique = column.unique().drop_null()
        order = np.asarray(pc.array_sort_indices(unique)).astype(np.int64)
        code = np.asarray(pc.fill_null(pc.index_in(column, value_set=unique), -1)).astype(np.int64)
    except pa.ArrowException as error:
        raise FormatError(f"a column of type {column.type} cannot be read as time") from error
    rank = np.zeros(len(order) + 1, np.int64)  # the last entry is for nulls, which come first
    rank[order] = np.arange(1, len(order) + 1)
    return rank[code]


def _sure(
    table: Any,
    names: Mapping[str, str],
    rows: Codes,
    token: Codes,
    who: _Column,
    role: Codes,
    certain: bool,
    arrays: Arrays,
    error: MakeError,
) -> npt.NDArray[np.float64] | None:
    """Return the probability of every row; None if there is no such column, or if it is only about single labels."""
    if "probability" not in names or not len(rows):
        return None
    column = _Column(table, names["probability"])
    values = np.array([_number(value) for value in column.values])[column.codes]
    sure = np.where(column.empty, 1.0, values)
    wrong = rows[~((sure[rows] >= 0) & (sure[rows] <= 1))]
    if len(wrong):
        if not certain:
            return None
        raise error("a probability must be a number in 0..1", int(wrong[0]), got=column.at(int(wrong[0])))
    _, group = np.unique(np.stack([token[rows], who.codes[rows], role[rows]]), axis=1, return_inverse=True)
    total, count = np.bincount(group, weights=sure[rows]), np.bincount(group)
    off = np.abs(total - 1) > SUM
    if not off.any():
        return sure
    if (count[off] > 1).any():
        first = int(rows[np.argmax((off & (count > 1))[group])])
        said = total[(off & (count > 1))][0]
        raise error(
            f"the probabilities of annotator {excerpt(who.at(first))!r} for one token add up to {said:.3g}, not to 1",
            first,
        )
    if certain:
        return sure
    arrays.notes.append(
        f"The column {names['probability']} says how sure single labels are: probability={names['probability']} reads "
        "it as soft votes, the rest shared evenly by all other labels (on the command line: -r probability=…)."
    )
    return None


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return np.nan


def _soft(
    arrays: Arrays, rows: Codes, token_of_row: Codes, who: _Column, label: _Column, sure: npt.NDArray[np.float64]
) -> None:
    """Make a distribution of all rows of a token and annotator; one row alone leaves the rest to all other labels."""
    pairs = np.stack([token_of_row[rows], who.codes_in(arrays.annotators)[rows]])
    (token, annotator), place = np.unique(pairs, axis=1, return_inverse=True)
    n, T = len(token), len(arrays.labels)
    proba, named = np.zeros((n, T)), np.zeros((n, T), np.bool_)
    at = (place, label.codes_in(arrays.labels)[rows])
    np.add.at(proba, at, sure[rows])
    named[at] = True
    rest = np.maximum(1 - proba.sum(axis=1), 0)
    alone = named.sum(axis=1) == 1
    proba += np.where(named | ~alone[:, None], 0, (rest / max(T - 1, 1))[:, None])
    arrays.soft = SoftVotes.of(token, annotator, proba / proba.sum(axis=1, keepdims=True))


def _labels(arrays: Arrays, label: _Column, golds: Mapping[str, _Column], given: Codes) -> None:
    used = {label.values[code] for code in np.unique(label.codes[given])}
    for column in golds.values():
        used |= {value for value in column.values if value}
    arrays.labels = tuple(sorted(used))


def _annotations(arrays: Arrays, rows: Codes, token_of_row: Codes, who: _Column, label: _Column, role: Codes) -> None:
    """Fill in annotators, roles, annotations, and the golds that stand as rows of their own."""
    codes = label.codes_in(arrays.labels)
    everyone = np.flatnonzero(~who.empty)
    seen = np.unique(who.codes[everyone] * len(ROLES) + role[everyone]).tolist()
    pairs = sorted((who.values[key // len(ROLES)], key % len(ROLES)) for key in seen)
    crowd = [(name, r) for name, r in pairs if r < 2]
    arrays.annotators = tuple(dict.fromkeys(name for name, _ in crowd))
    if len(arrays.annotators) < len(crowd):
        double = next(name for i, (name, _) in enumerate(crowd) if name in [other for other, _ in crowd[:i]])
        raise FormatError(f"{excerpt(double)!r} is both an annotator and a model")
    arrays.roles = tuple(ROLES[r] for _, r in crowd)
    own = rows[role[rows] < 2]
    arrays.token, arrays.label = token_of_row[own], codes[own]
    arrays.annotator = who.codes_in(arrays.annotators)[own]
    for name in (name for name, r in pairs if r == 2):
        mine = rows[(role[rows] == 2) & (who.codes[rows] == who.values.index(name))]
        gold = np.full(int(arrays.offsets[-1]), -1, np.int16)
        gold[token_of_row[mine]] = codes[mine]
        arrays.golds[name] = gold


def _gold(arrays: Arrays, name: str, token: Codes, code: Codes, rows: Codes, error: MakeError) -> None:
    if name in arrays.golds:
        raise error(f"gold {excerpt(name)!r} is a column and an annotator as well")
    gold = np.full(int(arrays.offsets[-1]), -1, np.int16)
    gold[token] = code
    wrong = np.flatnonzero(gold[token] != code)
    if len(wrong):
        raise error(
            f"gold {excerpt(name)!r} has two labels for one token",
            int(rows[wrong[0]]),
            got=(arrays.labels[gold[token[wrong[0]]]], arrays.labels[code[wrong[0]]]),
        )
    arrays.golds[name] = gold
