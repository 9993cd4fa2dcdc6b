"""A long table into the arrays of a corpus, without a Python loop over rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lasca.corpus import CrowdCorpus, SoftVotes
from lasca.errors import FormatError, excerpt
from lasca.formats.base import Counts, as_time, natural_key
from lasca.formats.names import NAMES, SETTLED, mere_experts, plain_name, speaker
from lasca.formats.tabular import NAN, as_strings, ask_missing, no_labels

__all__ = ["Arrays"]

Codes = npt.NDArray[np.int64]
MakeError = Callable[..., FormatError]
ROLES = ("annotator", "model", "gold")
FEW = 30  # questions that may be asked of one token
DAY = re.compile(r"\s*\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b")
GOLDEN = re.compile(r"is_(?:gold\w*|ground_truth|reference|adjudicated)")
SUM = 1e-3  # how far the probabilities of one token may be from 1: rounded numbers


class Arrays(Counts):
    """The rows of a table as sequences, tokens and annotations, and what the load report says of them.

    `names` are the columns by the parts they play. A column `probability` that adds up to 1 for every token and
    annotator gives soft votes. With `certain` it may also say of single labels how sure they are: the rest is shared
    evenly by all others. `missing` names labels that are none.
    """

    most = 1000

    def __init__(
        self,
        table: Any,
        names: Mapping[str, str],
        golds: Sequence[str],
        error: MakeError,
        certain: bool = False,
        missing: str | None = None,
    ) -> None:
        super().__init__()
        self.table, self.names, self.error = table, names, error
        self.golds: dict[str, npt.NDArray[np.int16]] = {}
        self.soft: SoftVotes | None = None
        self._tokens(*self._places())
        if names.get("task") == names.get("token"):
            self.note("These are labels of whole texts: each text is a sequence of one token.")
        self.who, self.said = self._column("annotator"), self._column("label")
        for column in (self.who, self.said):
            broken = next((i for i, value in enumerate(column.values) if "\n" in value), None)
            if broken is not None:
                row, what = int(np.argmax(column.codes == broken)), "a line break inside a label or a name"
                raise error(what, row, got=column.values[broken], hint="Check the quotes")
        who, said = self.who, self.said
        self.count("labels nan, taken as missing", int(said.forget(NAN)))
        ask_missing(said.values, missing, error)
        if missing:
            self.count(f"labels {missing}, taken as missing", int(said.forget(no_labels(missing)[len(NAN) + 1 :])))
        who.forget(NAN)
        self.role = self._roles()
        unnamed = np.flatnonzero(who.empty & ~said.empty)
        if len(unnamed):
            hint = "Name the annotator, or take the row out"
            raise error("a label without an annotator", int(unnamed[0]), got=said.at(int(unnamed[0])), hint=hint)
        self.count("rows without label", int((said.empty & ~who.empty).sum()))
        given = np.flatnonzero(~said.empty)
        sure = self._sure(given, certain)
        doubted = given[:0] if sure is None else given[(sure[given] < 1) & (self.role[given] < 2)]
        given = np.setdiff1d(given, doubted)
        if len(given):
            given = self._last_only(given)
        columns = {name: _Column(table, name) for name in golds}
        used = {said.values[code] for code in np.unique(said.codes[np.concatenate([given, doubted])])}
        self.labels = tuple(sorted(used.union(*({v for v in column.values if v} for column in columns.values()))))
        self._annotations(given)
        if sure is not None and len(doubted):
            self._soft(doubted, sure)
        for name, column in columns.items():
            rows = np.flatnonzero(~column.empty)
            self._gold(name, column.codes_in(self.labels)[rows], rows)

    def corpus(self, source: str, format: str, others: Sequence[str]) -> CrowdCorpus:
        """Make the corpus; `others` are columns that may be metadata."""
        metadata, token_metadata = self._further(others)
        return CrowdCorpus.from_codes(
            tokens=self.tokens,
            offsets=self.offsets,
            labels=self.labels,
            annotators=self.annotators,
            annotation_token=self.token,
            annotation_annotator=self.annotator,
            annotation_label=self.label.astype(np.int64),
            sequence_ids=self.sequence_ids,
            golds=self.golds,
            roles=self.roles,
            metadata=metadata,
            token_metadata=token_metadata,
            soft=self.soft,
            load_report=self.report(source, format),
        )

    def _further(self, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the columns that are metadata of sequences and of tokens; what is neither is counted."""
        n = len(self.sequence_ids)
        of_sequence = np.repeat(np.arange(n), np.diff(self.offsets))[self.of_row]
        found: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for name in names:
            try:
                column = _Column(self.table, name)
            except FormatError:
                self.count("columns left out", 1, f"{name}: its cells are no text")
                continue
            for place, size, kept in ((of_sequence, n, found[0]), (self.of_row, int(self.offsets[-1]), found[1])):
                value = _one_each(column, place, size)
                if value is not None:
                    kept[name] = value
                    self.count("columns read as metadata", 1, name)
                    break
            else:
                if GOLDEN.fullmatch(plain_name(name)) and len(column.values) > 1:
                    raise self.error(
                        f"the column {excerpt(name)} says which labels are golds, and not votes",
                        hint="Call their annotator gold, and leave this column out",
                    )
                self.count("columns left out", 1, f"{name}: it says different things of one token")
        return found

    def _column(self, part: str) -> _Column:
        return _Column(self.table, self.names[part])

    def _places(self) -> tuple[_Column, Codes]:
        """Return the sequence and the position of every row."""
        names = self.names
        place = self._column("sequence" if "sequence" in names else "task")
        if place.empty.any():
            what = f"a row without a {'sequence' if 'sequence' in names else 'task'}"
            raise self.error(what, int(np.argmax(place.empty)))
        if "sequence" in names:
            if "position" not in names:
                return place, _running(place.codes, self._column("annotator").codes)
            return place, _positions(self._column("position"), self.error)
        parts = [re.fullmatch(r"(.*):([0-9]{1,15})", value, re.DOTALL) for value in place.values]
        if not all(parts) or names["task"] == names.get("token"):  # items of their own, not tokens of sequences
            return place, np.zeros(len(place.codes), np.int64)
        pairs = [(match[1], int(match[2])) for match in parts if match is not None]
        ids = sorted({id for id, _ in pairs})
        code = {id: i for i, id in enumerate(ids)}
        position = np.array([number for _, number in pairs], np.int64)[place.codes]
        place.values, place.codes = ids, np.array([code[id] for id, _ in pairs], np.int64)[place.codes]
        return place, position

    def _tokens(self, sequence: _Column, position: Codes) -> None:
        """Put the tokens in order (sequences by id, positions as numbers), and find the token of every row."""
        self.sequence_ids = sorted(sequence.values, key=lambda id: (natural_key(id), id))
        place = sequence.codes_in(self.sequence_ids)
        order = _sorted(place, position)
        sorted_place, sorted_position = place[order], position[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (np.diff(sorted_place) != 0) | (np.diff(sorted_position) != 0)
        self.of_row = np.empty(len(order), np.int64)
        self.of_row[order] = np.cumsum(new) - 1
        first_row = order[new]
        lengths = np.bincount(sorted_place[new], minlength=len(self.sequence_ids))
        self.offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        mentioned = sorted_position[new]
        holes = mentioned[self.offsets[1:] - 1] - mentioned[self.offsets[:-1]] + 1 - lengths
        if holes.any():
            example = f"sequence {self.sequence_ids[int(np.argmax(holes > 0))]}"
            self.count("positions nobody mentions", int(holes.sum()), example)
        if "token" not in self.names:
            self.tokens: Any = ["_"] * len(first_row)
            self.note("There is no column of tokens: every token is written as _.")
            return
        words = self._column("token")
        chosen = words.codes[first_row]
        other = np.flatnonzero(words.codes != chosen[self.of_row])
        if len(other):
            row = int(other[0])
            raise self.error(
                f"the token is {excerpt(words.values[chosen[self.of_row[row]]])!r} elsewhere "
                f"(sequence {excerpt(sequence.at(row))!r}, position {position[row]})",
                row,
                got=words.at(row),
                hint="One sequence and position must stand for one token",
            )
        self.tokens = pa.array(words.values, pa.large_string()).take(pa.array(chosen))

    def _roles(self) -> Codes:
        if "role" not in self.names:
            roles = {name: "gold" if SETTLED.fullmatch(name) else speaker(name) for name in self.who.values}
            roles |= dict.fromkeys(mere_experts([name for name in roles if roles[name] == "gold"]), "annotator")
            return np.array([ROLES.index(role) for role in roles.values()] or [0], np.int64)[self.who.codes]
        column = self._column("role")
        codes = np.where(column.empty, 0, column.codes_in(ROLES))
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise self.error(f"a role must be one of {', '.join(ROLES)}", row, got=column.at(row))
        return codes

    def _last_only(self, rows: Codes) -> Codes:
        """Keep one row per token, annotator and role: the last by time; without time they must agree."""
        token, who, said = self.of_row, self.who, self.said
        time = np.zeros(len(token), np.int64)
        if "time" in self.names:
            time = _ranks(self.table.column(self.names["time"]))
        values = said.codes_in(sorted(said.values))
        order = rows[_sorted(token[rows], self.role[rows], who.codes[rows], time[rows], values[rows])]
        same = np.zeros(len(order), np.bool_)
        same[:-1] = (np.diff(token[order]) == 0) & (np.diff(self.role[order]) == 0) & (np.diff(who.codes[order]) == 0)
        if not same.any():
            return rows
        following = np.append(order[1:], order[-1:])
        apart = self._apart(order[same], following[same])
        if apart and ("time" not in self.names or 2 * same.sum() >= len(order)):
            raise self.error(
                f"annotator {excerpt(who.at(int(order[same][0])))!r} labelled this token several times, each time with "
                f"another {apart}",
                int(following[same][0]),
                hint=f"Keep the rows of one {apart}; if it is a part of what is labelled, make it a part of the ids",
            )
        differs = same & (said.codes[order] != said.codes[following])
        clash = differs & (time[order] == time[following])
        if clash.any():
            at = int(np.argmax(clash))
            first, second = sorted((int(order[at]), int(following[at])))
            raise self.error(
                f"annotator {excerpt(who.at(first))!r} labelled this token twice: {excerpt(said.at(first))!r} and "
                f"{excerpt(said.at(second))!r}",
                second,
                hint="Keep one, or add a column `time`: the last one then counts",
            )
        if differs.any() and (day := _unclear_day(self.table.column(self.names["time"]))):
            raise self.error(
                f"annotators labelled tokens twice, and which was last cannot be told: {excerpt(day)} has its day "
                "first, or its month",
                int(order[np.argmax(differs)]),
                hint="Write times as 2024-12-31 10:00",
            )
        self.count("superseded", int(differs.sum()))
        self.count("repeated", int((same & ~differs).sum()))
        return order[~same]

    def _apart(self, first: Codes, second: Codes) -> str:
        """Return the column of few values that tells rows apart about the same token: a question, or an aspect."""
        for name in self.table.column_names:
            known = name in self.names.values() or plain_name(name) in NAMES["time"]
            if known or pa.types.is_nested(self.table.column(name).type):
                continue
            column = _Column(self.table, name)
            if len(column.values) <= FEW and (column.codes[first] != column.codes[second]).all():
                return str(name)
        return ""

    def _sure(self, rows: Codes, certain: bool) -> npt.NDArray[np.float64] | None:
        """Return the probability of every row; None if there is no such column, or it is only about single labels."""
        if "probability" not in self.names or not len(rows):
            return None
        column = self._column("probability")
        values = np.array([_number(value) for value in column.values])[column.codes]
        sure = np.where(column.empty, 1.0, values)
        wrong = rows[~((sure[rows] >= 0) & (sure[rows] <= 1))]
        if len(wrong):
            if not certain:
                return None
            raise self.error("a probability must be a number in 0..1", int(wrong[0]), got=column.at(int(wrong[0])))
        keys = np.stack([self.of_row[rows], self.who.codes[rows], self.role[rows]])
        _, group = np.unique(keys, axis=1, return_inverse=True)
        total, count = np.bincount(group, weights=sure[rows]), np.bincount(group)
        off = np.abs(total - 1) > SUM
        several = off & (count > 1)
        if several.any():
            first, name = int(rows[np.argmax(several[group])]), "the probabilities of annotator"
            shown = (
                f"{name} {excerpt(self.who.at(int(first)))!r} for one token add up to {total[several][0]:.3g}, not to 1"
            )
            raise self.error(shown, first)
        if not off.any() or certain:
            return sure
        own = self.names["probability"]
        self.note(
            f"The column {own} says how sure single labels are: probability={own} reads it as soft votes, the rest "
            "shared evenly by all other labels (on the command line: -r probability=…)."
        )
        return None

    def _soft(self, rows: Codes, sure: npt.NDArray[np.float64]) -> None:
        """Make a distribution of all rows of a token and annotator; one row alone leaves the rest to all others."""
        pairs = np.stack([self.of_row[rows], self.who.codes_in(self.annotators)[rows]])
        (token, annotator), place = np.unique(pairs, axis=1, return_inverse=True)
        n, T = len(token), len(self.labels)
        proba, named = np.zeros((n, T)), np.zeros((n, T), np.bool_)
        at = (place, self.said.codes_in(self.labels)[rows])
        np.add.at(proba, at, sure[rows])
        named[at] = True
        rest = np.maximum(1 - proba.sum(axis=1), 0)
        alone = named.sum(axis=1) == 1
        proba += np.where(named | ~alone[:, None], 0, (rest / max(T - 1, 1))[:, None])
        self.soft = SoftVotes.of(token, annotator, proba / proba.sum(axis=1, keepdims=True))

    def _annotations(self, rows: Codes) -> None:
        """Fill in annotators, roles, annotations, and the golds that stand as rows of their own."""
        who, role, codes = self.who, self.role, self.said.codes_in(self.labels)
        everyone = np.flatnonzero(~who.empty)
        seen = np.unique(who.codes[everyone] * len(ROLES) + role[everyone]).tolist()
        pairs = sorted((who.values[key // len(ROLES)], key % len(ROLES)) for key in seen)
        crowd = [(name, r) for name, r in pairs if r < 2]
        self.annotators = tuple(dict.fromkeys(name for name, _ in crowd))
        if len(self.annotators) < len(crowd):
            double = next(name for i, (name, _) in enumerate(crowd) if name in [other for other, _ in crowd[:i]])
            raise FormatError(f"{excerpt(double)!r} is both an annotator and a model")
        self.roles = tuple(ROLES[r] for _, r in crowd)
        own = rows[role[rows] < 2]
        self.token, self.label = self.of_row[own], codes[own]
        self.annotator = who.codes_in(self.annotators)[own]
        for name in (name for name, r in pairs if r == 2):
            mine = rows[(role[rows] == 2) & (who.codes[rows] == who.values.index(name))]
            self.golds[name] = np.full(int(self.offsets[-1]), -1, np.int16)
            self.golds[name][self.of_row[mine]] = codes[mine]

    def _gold(self, name: str, code: Codes, rows: Codes) -> None:
        if name in self.golds:
            raise self.error(f"gold {excerpt(name)!r} is a column and an annotator as well")
        gold, token = np.full(int(self.offsets[-1]), -1, np.int16), self.of_row[rows]
        gold[token] = code
        wrong = np.flatnonzero(gold[token] != code)
        if len(wrong):
            both = (self.labels[gold[token[wrong[0]]]], self.labels[code[wrong[0]]])
            raise self.error(f"gold {excerpt(name)!r} has two labels for one token", int(rows[wrong[0]]), got=both)
        self.golds[name] = gold


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


def _one_each(column: _Column, place: Codes, n: int) -> list[str] | None:
    """Return the one value of every place ("" where all are empty), or None if a place has several."""
    chosen = np.full(n, -1, np.int64)
    rows = np.flatnonzero(~column.empty)
    chosen[place[rows]] = column.codes[rows]
    if (chosen[place[rows]] != column.codes[rows]).any():
        return None
    values = [*column.values, ""]
    return [values[code] for code in chosen.tolist()]


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


def _ranks(column: Any) -> Codes:
    """Return numbers that sort like the values; numbers in text sort as numbers, nulls first."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.fill_null(column, "").to_pylist()
        times = {text: as_time(text) or "" for text in set(texts)}
        known = all(times[text] for text in times if text)
        unique = sorted(times, key=lambda text: ((times[text],) if known else natural_key(text), text))
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


def _unclear_day(column: Any) -> str:
    """Return a time whose day may be its month (1/12/2024), or ""."""
    return next((text for text in map(str, column.unique().to_pylist()) if DAY.match(text)), "")


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return np.nan
