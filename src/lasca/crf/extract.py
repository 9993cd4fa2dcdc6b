"""From tokens to features: templates, a dictionary (or hashing), a frequency cut-off.

Work is done per distinct word wherever a template looks at one offset only; templates that join several
offsets are looked up per token. Gazetteers are, too, but all of them share one slot of a token: what they say together
is one of few combinations. A feature is found by a *key*: the codes of its values
in the fields' vocabularies, read as digits of one number. The dictionary is one sorted array of keys per
template; ids follow the order of templates, then of keys.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lasca.arrays import Array, borders
from lasca.crf.features import Features
from lasca.crf.fields import BEGIN, END, Lexicons, Longer, cluster_values, field_values
from lasca.crf.templates import Part, Template, Templates
from lasca.errors import ModelError
from lasca.estimator import check_int
from lasca.kernels.crf_features import build_table, find_keys

__all__ = ["Batch", "Dictionary", "Extractor", "Fields", "KeyCounts"]

_GAZETTEER = ("B", "I")
_TOGETHER = 36  # gazetteer templates in one slot: 3**36 combinations fit a 64-bit number


class Batch:
    """Tokens as codes of distinct words; codes 0 and 1 stand for what is before and after a sequence."""

    def __init__(self, tokens: Sequence[str], offsets: Array) -> None:
        self.tokens, self.offsets = tokens, np.asarray(offsets, dtype=np.int64)
        index: dict[str, int] = {}
        codes = [index.setdefault(token, len(index)) for token in tokens]
        self.words = list(index)
        self.codes = np.array(codes, dtype=np.int64) + 2
        if len(self.offsets) < 1 or self.offsets[0] != 0 or self.offsets[-1] != len(codes):
            raise ModelError("offsets must begin with 0 and end with the number of tokens", got=self.offsets)
        lengths = np.diff(self.offsets)
        self._start = np.repeat(self.offsets[:-1], lengths)
        self.ends = np.repeat(self.offsets[1:], lengths)
        self._shifted: dict[int, tuple[Array, Array]] = {}
        self._at: dict[int, Array] = {0: self.codes}
        self._times: dict[tuple[int, int], Array] = {}

    @property
    def n_words(self) -> int:
        """The number of codes."""
        return len(self.words) + 2

    def places(self, offset: int) -> tuple[Array, Array]:
        """Return the token at an offset from each token, and where that is: 0 before, 1 after, 2 in the sequence."""
        if offset not in self._shifted:
            place = np.arange(len(self.codes)) + offset
            side = np.where(place < self._start, 0, np.where(place >= self.ends, 1, 2))
            self._shifted[offset] = np.where(side == 2, place, 0), side
        return self._shifted[offset]

    def at(self, offset: int) -> Array:
        """Return the code of the word at an offset from each token."""
        if offset not in self._at:
            place, side = self.places(offset)
            self._at[offset] = np.where(side == 2, self.codes[place] if len(place) else self.codes, side)
        return self._at[offset]

    def times(self, window: tuple[int, int]) -> Array:
        """Return how often each word stands at one of these offsets from a token."""
        if window not in self._times:
            seen = (np.bincount(self.at(o), minlength=self.n_words) for o in range(window[0], window[1] + 1))
            self._times[window] = sum(seen, np.zeros(self.n_words, dtype=np.int64))
        return self._times[window]


class Fields:
    """Codes of field values; vocabularies grow while fitting and are fixed after."""

    def __init__(self, batch: Batch, lexicons: Lexicons, vocabularies: dict[str, dict[str, int]], grow: bool) -> None:
        self.batch, self.lexicons, self.vocabularies, self.grow = batch, lexicons, vocabularies, grow
        self._words: dict[str, Array] = {}
        self._tokens: dict[str, Array] = {}
        self._clusters: dict[str, tuple[list[str | None], Array]] = {}
        self._listed: tuple[Array, list[tuple[int, Longer]]] | None = None

    def words(self, name: str) -> Array:
        """Return the code of each distinct word's value, −1 for none or unknown."""
        if name not in self._words:
            if name.startswith("cluster:"):
                self._words[name] = self._cluster_codes(name)
            else:
                self._words[name] = self._codes(name, [BEGIN, END, *field_values(name, self.batch.words)])
        return self._words[name]

    def known(self, name: str) -> None:
        """Take the values of a field into its vocabulary."""
        if name.startswith("gazetteer:"):
            self.vocabularies.setdefault(name, {v: i for i, v in enumerate(_GAZETTEER)})
        else:
            self.words(name)

    def _codes(self, name: str, values: list[str | None]) -> Array:
        if self.grow:
            known = self.vocabularies.setdefault(name, {})
            codes = [-1 if v is None else known.setdefault(v, len(known)) for v in values]
        else:
            known = self.vocabularies[name]
            codes = [-1 if v is None else known.get(v, -1) for v in values]
        return np.array(codes, dtype=np.int64)

    def _cluster_codes(self, name: str) -> Array:
        """Words are looked up once, however many lengths of their path are asked for."""
        which, _, length = name.removeprefix("cluster:").partition(":")
        if which not in self._clusters:
            values = [BEGIN, END, *cluster_values(which, self.batch.words, self.lexicons)]
            number = {path: i for i, path in enumerate(dict.fromkeys(values))}
            self._clusters[which] = list(number), np.array([number[v] for v in values], dtype=np.int64)
        paths, place = self._clusters[which]
        if length:
            paths = [v if v is None or v in (BEGIN, END) else v[: int(length)] for v in paths]
        return np.asarray(self._codes(name, paths)[place])

    def tokens(self, part: Part) -> Array:
        """Return the code of the value at an offset from each token."""
        if not part.field.startswith("gazetteer:"):
            return np.asarray(self.words(part.field)[self.batch.at(part.offset)])
        if part.field not in self._tokens:
            self._tokens[part.field] = self._gazetteer(part.field.removeprefix("gazetteer:"))
            self.known(part.field)
        place, side = self.batch.places(part.offset)
        codes = self._tokens[part.field]
        return np.where(side == 2, codes[place] if len(place) else codes, -1)

    def _gazetteer(self, which: str) -> Array:
        """Return 0 for each token that begins a listed phrase, 1 inside one, −1 elsewhere.

        The longest match wins, matches do not overlap. Words that are whole phrases are looked up all at once.
        """
        lists, words, codes = self.lexicons, self.batch.words, self.batch.codes - 2
        if which not in lists.gazetteers:
            raise ModelError(
                f"a template asks for a gazetteer {which!r} that was not given", got=list(lists.gazetteers)
            )
        some = lists.beginnings
        if self._listed is None:
            kinds = [some.kinds.get(word, 0) for word in words]
            longer = [(i, some.longer[words[i]]) for i, kind in enumerate(kinds) if kind in some.going_on]
            self._listed = np.array(kinds, dtype=np.int64)[codes], longer
        of_token, longer = self._listed
        out = np.array([0 if which in names else -1 for names in some.alone])[of_token]
        seconds = {i: found[which] for i, found in longer if which in found}
        begins = np.zeros(len(words), dtype=np.bool_)
        begins[list(seconds)] = True
        chosen = np.flatnonzero(begins[codes[:-1]])
        phrases, free = lists.gazetteers[which], 0
        near = (codes[chosen], codes[chosen + 1], self.batch.ends[chosen])
        for i, code, then, end in zip(chosen.tolist(), *(part.tolist() for part in near)):
            for size in seconds[code].get(words[then], ()) if i >= free else ():
                if i + size <= end and tuple(words[c] for c in codes[i : i + size].tolist()) in phrases:
                    out[i] = 0
                    out[i + 1 : i + size] = 1
                    free = i + size
                    break
        return out

    def join(self, codes: list[Array], parts: Sequence[Part]) -> Array:
        """Return one key for the codes of several parts, −1 where one of them is missing."""
        key, span = codes[0], len(self.vocabularies[parts[0].field])
        for code, part in zip(codes[1:], parts[1:]):
            radix = max(len(self.vocabularies[part.field]), 1)
            span *= radix
            if span >= 2**62:
                raise ModelError("a template joins too many different values", got="|".join(p.field for p in parts))
            key = np.where((key < 0) | (code < 0), -1, key * radix + code)
        return key


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Values of each field, in the order of their codes, and the sorted keys of each template."""

    values: dict[str, list[str]]
    keys: list[Array]

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(len(k) for k in self.keys)


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """The keys of each template, rising, and how often each occurs; those of blocks add up."""

    of: list[tuple[Array, Array]]

    def __add__(self, other: KeyCounts) -> KeyCounts:
        made = []
        for (keys, times), (more, again) in zip(self.of, other.of):
            found, place = np.unique(np.concatenate([keys, more]), return_inverse=True)
            weights = np.concatenate([times, again])
            made.append((found, np.bincount(place.reshape(-1), weights, minlength=len(found))))
        return KeyCounts(made)


class Extractor:
    """Turn tokens into features; `fit` builds the dictionary, `transform` uses it and leaves out what is unknown.

    `min_count` leaves out features that occur less often in the training data. With `hash_bits` there is no
    dictionary: features fall into 2**hash_bits places by a checksum of their text, and may share them.
    """

    def __init__(
        self,
        *,
        templates: str | Templates = "ner",
        lexicons: Lexicons | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        dictionary: Dictionary | None = None,
    ) -> None:
        self.templates = templates if isinstance(templates, Templates) else Templates.parse(templates)
        self.lexicons = Lexicons() if lexicons is None else lexicons
        self.min_count = check_int("min_count", min_count, low=1)
        self.hash_bits = None if hash_bits is None else check_int("hash_bits", hash_bits, low=4, high=26)
        self.dictionary = dictionary
        self._vocabularies: dict[str, dict[str, int]] = {}
        self._direct: dict[int, Array] = {}
        if dictionary is not None:
            self._vocabularies = {f: {v: i for i, v in enumerate(vs)} for f, vs in dictionary.values.items()}

    @property
    def n_features(self) -> int:
        """The number of features the dictionary holds, or places to hash to."""
        if self.hash_bits is not None:
            return 1 << self.hash_bits
        return 0 if self.dictionary is None else self.dictionary.n_features

    def fit(self, tokens: Sequence[str], offsets: Array) -> Features:
        """Build the dictionary from these tokens and return their features."""
        self._vocabularies, self._direct = {}, {}
        build = _Build(self, Batch(tokens, offsets), grow=True)
        self.settle(build.counted())
        return build.features()

    def know(self, words: Sequence[str]) -> None:
        """Take the distinct words of all tokens, in the order in which they first occur: the first pass over blocks."""
        self._vocabularies, self._direct = {}, {}
        if self.hash_bits is None:
            fields = Fields(Batch(words, np.array([0, len(words)])), self.lexicons, self._vocabularies, grow=True)
            for part in (part for template in self.templates.items for part in template.parts):
                fields.known(part.field)

    def count(self, tokens: Sequence[str], offsets: Array) -> KeyCounts:
        """Return the keys of each template in these tokens, and how often they occur: the second pass over blocks."""
        return _Build(self, Batch(tokens, offsets)).counted()

    def settle(self, counted: KeyCounts) -> None:
        """Make the dictionary of what was counted in all blocks."""
        values = {field: list(known) for field, known in self._vocabularies.items()}
        kept = [keys[times >= self.min_count].astype(np.int64) for keys, times in counted.of]
        self.dictionary = Dictionary(values, kept)

    def transform(self, tokens: Sequence[str], offsets: Array) -> Features:
        """Return the features of these tokens; features that are not in the dictionary are left out."""
        if self.dictionary is None:
            raise ModelError("the extractor has no dictionary", hint="Call fit first")
        return _Build(self, Batch(tokens, offsets)).features()

    def feature_names(self) -> list[str]:
        """Return the text of each feature, in the order of ids; empty with hashing."""
        if self.dictionary is None or self.hash_bits is not None:
            return []
        out: list[str] = []
        for template, keys in zip(self.templates.items, self.dictionary.keys):
            out.extend(_texts(template, keys, self.dictionary.values))
        return out


def _texts(template: Template, keys: Array, values: dict[str, list[str]]) -> list[str]:
    """Return `template=value|value` for each key."""
    if not template.parts:
        return ["bias"] * len(keys)
    columns: list[list[str]] = []
    rest = keys
    for part in reversed(template.parts):
        names = values[part.field]
        rest, codes = np.divmod(rest, max(len(names), 1))
        columns.append([names[c] for c in codes.tolist()])
    return [f"{template.name}={'|'.join(row)}" for row in zip(*reversed(columns))]


class _Build:
    """Tokens on their way to features: the keys of templates, bundles of words per offset, slots of tokens."""

    def __init__(self, extractor: Extractor, batch: Batch, *, grow: bool = False) -> None:
        self.extractor, self.batch = extractor, batch
        self.hashed = extractor.hash_bits is not None
        vocabularies: dict[str, dict[str, int]] = {} if self.hashed else extractor._vocabularies
        self.fields = Fields(batch, extractor.lexicons, vocabularies, grow=grow or self.hashed)
        self._keys: dict[Template, Array] = {}
        self.bundles: list[Array] = [np.full((1, 1), -1, dtype=np.int64)]
        self.n_bundles = 1
        self.slots: list[Array] = []

    def features(self) -> Features:
        """Find the features of all tokens."""
        groups: dict[tuple[int, int], list[Array]] = {}
        listed: list[tuple[Array, Array]] = []
        for number, template in enumerate(self.extractor.templates.items):
            window = self._window(template)
            if window is None and template.window is None and len(template.parts) == 1:
                keys = self._token_keys(template)
                listed.append((keys, self._identify(number, template, keys)))
            elif window is None:
                self._token_level(number, template)
            else:
                ids = self._identify(number, template, self._word_keys(template, window)[0])
                groups.setdefault(window, []).append(ids)
        for (low, high), columns in groups.items():
            self._add_bundles(np.stack(columns, axis=1))
            base = self.n_bundles - self.batch.n_words
            self.slots.extend((self.batch.at(o) + base).astype(np.int32) for o in range(low, high + 1))
        for first in range(0, len(listed), _TOGETHER):
            self._lists(listed[first : first + _TOGETHER])
        start = borders(np.concatenate([(b >= 0).sum(axis=1) for b in self.bundles]))
        flat = np.concatenate([b[b >= 0] for b in self.bundles]).astype(np.int32)
        slots = np.ascontiguousarray(np.stack(self.slots, axis=1))
        return Features(self.batch.offsets, slots, start, flat, self.extractor.n_features)

    @staticmethod
    def _window(template: Template) -> tuple[int, int] | None:
        """Return the offsets of a template that looks at one word; None if it looks at several."""
        if any(p.field.startswith("gazetteer:") for p in template.parts):
            return None
        if template.window is not None:
            return template.window
        offsets = {p.offset for p in template.parts} or {0}
        return (min(offsets), max(offsets)) if len(offsets) == 1 else None

    def _add_bundles(self, table: Array) -> None:
        self.bundles.append(table)
        self.n_bundles += len(table)

    def _word_keys(self, template: Template, window: tuple[int, int]) -> tuple[Array, Array]:
        """Return the key of each distinct word, −1 for none, and how often it occurs."""
        times = self.batch.times(window)
        if template.window is not None:
            times = np.append([0, 0], times[2:])
        if template.parts:
            keys = self.fields.join([self.fields.words(p.field) for p in template.parts], template.parts)
        else:
            keys = np.zeros(len(times), dtype=np.int64)
        return np.where(times > 0, keys, -1), times

    def _token_keys(self, template: Template, shift: int = 0) -> Array:
        """Return the key of each token, −1 for none, where a template looks at several words; `shift` moves it."""
        shifted = Template(tuple(Part(p.field, p.offset + shift) for p in template.parts))
        if shifted not in self._keys:  # asked for when keys are counted and when they are looked up
            self._keys[shifted] = self.fields.join([self.fields.tokens(p) for p in shifted.parts], shifted.parts)
        return self._keys[shifted]

    def counted(self) -> KeyCounts:
        """Return the keys of each template, rising, and how often each occurs; nothing where keys are hashed."""
        found = []
        for template in () if self.hashed else self.extractor.templates.items:
            window, times = self._window(template), None
            if window is not None:
                keys, times = self._word_keys(template, window)
            else:
                keys = self._token_keys(template)
            present = keys >= 0
            own, place = np.unique(keys[present], return_inverse=True)
            found.append((own, np.bincount(place.reshape(-1), None if times is None else times[present], len(own))))
        return KeyCounts(found)

    def _token_level(self, number: int, template: Template) -> None:
        """Give each token a slot of its own, with one bundle per feature."""
        for shift in range(template.window[0], template.window[1] + 1) if template.window is not None else (0,):
            ids = self._identify(number, template, self._token_keys(template, shift))
            found = pa.array(ids).dictionary_encode()  # each id once, −1 included, in the order they come up
            self.slots.append(found.indices.to_numpy() + np.int32(self.n_bundles))
            self._add_bundles(found.dictionary.to_numpy()[:, None])

    def _lists(self, listed: list[tuple[Array, Array]]) -> None:
        """Give each token one slot for what gazetteers say (nothing, begins, inside): a bundle per combination."""
        together = np.zeros(len(self.batch.codes), dtype=np.int64)
        for keys, _ in listed:
            together = together * 3 + keys + 1
        found = np.unique(together)
        place = np.searchsorted(found, together)
        first = np.zeros(len(found), dtype=np.int64)
        first[place] = np.arange(len(place))
        self.slots.append((place + self.n_bundles).astype(np.int32))
        self._add_bundles(np.stack([ids[first] for _, ids in listed], axis=1))

    def _identify(self, number: int, template: Template, keys: Array) -> Array:
        """Return the feature id of each key, −1 for none."""
        if self.hashed:
            return self._hash(template, keys)
        dictionary = self.extractor.dictionary
        assert dictionary is not None
        known = dictionary.keys[number]
        first = sum(len(k) for k in dictionary.keys[:number])
        if len(template.parts) == 1:
            direct = self.extractor._direct.get(number)
            if direct is None:
                direct = np.full(len(dictionary.values[template.parts[0].field]) + 1, -1, dtype=np.int64)
                direct[known] = np.arange(len(known)) + first
                self.extractor._direct[number] = direct
            return np.asarray(direct[keys])
        table = self.extractor._direct.get(number)
        if table is None:
            table = self.extractor._direct[number] = build_table(known)
        place = find_keys(known, table, keys)
        return np.where(place >= 0, place + first, -1)

    def _hash(self, template: Template, keys: Array) -> Array:
        found, place = np.unique(keys, return_inverse=True)
        values = {f: list(v) for f, v in self.fields.vocabularies.items()}
        present = found >= 0
        texts = _texts(template, found[present], values)
        mask = self.extractor.n_features - 1
        ids = np.full(len(found), -1, dtype=np.int64)
        ids[present] = [_checksum(text) & mask for text in texts]
        return np.asarray(ids[place.reshape(-1)])


def _checksum(text: str) -> int:
    """Return a number for a text: CRC-32 keeps what texts have in common, and one round of a multiplicative hash (odd
    constant, high bits) spreads that over the bits that are used.
    """
    data = text.encode("utf-8", "surrogatepass")
    low = zlib.crc32(data)
    return (low ^ (low >> 15)) * 0x2C1B3C6D >> 12
