"""The template language and the extraction of features, against their plain meaning."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import naive
from crf_cases import from_attributes
from lasca import crf
from lasca.crf.fields import Lexicons, read_clusters, read_gazetteer
from lasca.crf.templates import TEMPLATE_SETS, Templates, with_lists
from lasca.errors import FormatError, ModelError, ParameterError

SENTENCES = [
    ["The", "EU", "rejects", "German", "call", "."],
    [],
    ["Peter", "Blackburn"],
    ["1996-08-22"],
    ["EU", "EU", "the", "naïve", "Ünal", "日本", "<s>", "=|=", ""],
]
TEXT = (
    "bias word[-2..2] lower[0] prefix1[0] suffix3[-1] shape[0] lower[-1]|lower[0] shape[0]|prefix2[0] any:lower[1..3]"
)


def flat(sentences: list[list[str]]) -> tuple[list[str], np.ndarray]:
    return [t for s in sentences for t in s], np.concatenate([[0], np.cumsum([len(s) for s in sentences])])


def texts(extractor: crf.Extractor, features: crf.Features) -> list[list[str]]:
    names = extractor.feature_names()
    starts, ids = features.lists()
    return [sorted(names[f] for f in ids[a:b]) for a, b in pairwise(starts)]


def test_features_are_what_templates_say() -> None:
    extractor = crf.Extractor(templates=TEXT)
    found = texts(extractor, extractor.fit(*flat(SENTENCES)))
    names = [t.name for t in extractor.templates.items]
    expected = [sorted(naive.crf_attributes(names, s, i)) for s in SENTENCES for i in range(len(s))]
    assert found == expected
    assert len(set(extractor.feature_names())) == extractor.n_features


def test_words_are_told_apart_by_their_capitals() -> None:
    by_hand = {"Ada": "title", "A": "initial", "NATO": "upper", "cat": "lower", "iPhone": "mixed", "McDonald": "mixed"}
    by_hand |= {"1996": "none", "Sgt.": "title", "3rd": "lower"}
    extractor = crf.Extractor(templates="case[0]")
    for word, case in by_hand.items():
        extractor.fit([word], np.array([0, 1]))
        assert list(extractor.feature_names()) == [f"case[0]={case}"], word


def test_transform_gives_the_known_features_and_leaves_out_the_others() -> None:
    extractor = crf.Extractor(templates=TEXT)
    first = extractor.fit(*flat(SENTENCES))
    assert texts(extractor, extractor.transform(*flat(SENTENCES))) == texts(extractor, first)
    known = set(extractor.feature_names())
    names = [t.name for t in extractor.templates.items]
    new = [["An", "EU", "call"], ["zzz"], []]
    expected = [sorted(set(naive.crf_attributes(names, s, i)) & known) for s in new for i in range(len(s))]
    assert texts(extractor, extractor.transform(*flat(new))) == expected
    empty = extractor.transform([], np.array([0]))
    assert empty.n_tokens == 0
    assert empty.n_sequences == 0


def test_min_count_keeps_what_occurs_often_enough() -> None:
    counts: dict[str, int] = {}
    names = [t.name for t in Templates.parse(TEXT).items]
    for s in SENTENCES:
        for i in range(len(s)):
            for text in naive.crf_attributes(names, s, i):
                counts[text] = counts.get(text, 0) + 1
    extractor = crf.Extractor(templates=TEXT, min_count=2)
    extractor.fit(*flat(SENTENCES))
    assert sorted(extractor.feature_names()) == sorted(t for t, n in counts.items() if n >= 2)


@pytest.mark.parametrize("slot", [-1, 2])
def test_slots_hold_bundles_that_there_are(slot: int) -> None:
    with pytest.raises(ModelError, match="bundle ids below 2"):
        crf.Features(np.array([0, 2]), np.array([[0], [slot]]), np.array([0, 1, 2]), np.array([0, 1]), 2)


def test_hashing_needs_no_dictionary() -> None:
    one, two = crf.Extractor(templates=TEXT, hash_bits=16), crf.Extractor(templates=TEXT, hash_bits=16)
    a = one.fit(*flat(SENTENCES))
    two.fit(*flat(SENTENCES[:1]))
    b = two.transform(*flat(SENTENCES))
    rows = [
        [sorted(f.bundle_feature[f.bundle_start[k] : f.bundle_start[k + 1]].tolist()) for row in f.slots for k in row]
        for f in (a, b)
    ]
    assert rows[0] == rows[1]
    assert a.n_features == 1 << 16
    assert len(np.unique(a.bundle_feature)) > 100


def test_clusters_and_gazetteers(tmp_path: Path) -> None:
    (tmp_path / "brown").write_text("0110\tEU\t12\n0111\tthe\t9\n", encoding="utf-8")
    (tmp_path / "pairs").write_text("german\tdemonym\n", encoding="utf-8")
    (tmp_path / "names").write_text("Peter Blackburn\nPeter\n", encoding="utf-8")
    lexicons = Lexicons(
        {"b": read_clusters(tmp_path / "brown"), "p": read_clusters(tmp_path / "pairs")},
        {"n": read_gazetteer(tmp_path / "names")},
    )
    extractor = crf.Extractor(templates="cluster:b[0] cluster:b:3[0] cluster:p[0] gazetteer:n[0]", lexicons=lexicons)
    found = texts(extractor, extractor.fit(*flat(SENTENCES)))
    assert found[0] == ["cluster:b:3[0]=011", "cluster:b[0]=0111"]
    assert found[3] == ["cluster:p[0]=demonym"]
    assert found[6:8] == [["gazetteer:n[0]=B"], ["gazetteer:n[0]=I"]]
    hashed = crf.Extractor(templates=extractor.templates, lexicons=lexicons, hash_bits=16)
    lengths = [len(row) for row in found]
    assert np.diff(hashed.fit(*flat(SENTENCES)).lists()[0]).tolist() == lengths  # what is in no list has no feature
    (tmp_path / "windows").write_text("\ufeffEU\t0110\r\nx\x85y\u2028z\t01\r\n", encoding="utf-8", newline="")
    assert read_clusters(tmp_path / "windows") == {"EU": "0110", "x\x85y\u2028z": "01"}
    (tmp_path / "broken").write_text("a\tb\tc\td\n", encoding="utf-8")
    with pytest.raises(FormatError, match="broken:1"):
        read_clusters(tmp_path / "broken")
    with pytest.raises(ModelError, match="not given"):
        crf.Extractor(templates="cluster:x[0]").fit(["a"], np.array([0, 1]))
    with pytest.raises(ModelError, match="not given"):
        crf.Extractor(templates="gazetteer:x[0]").fit(["a"], np.array([0, 1]))


def test_a_gazetteer_in_a_window_is_one_template_whatever_stands_behind_it() -> None:
    lexicons = Lexicons({}, {"n": frozenset({("Peter", "Blackburn")})})
    extractor = crf.Extractor(templates="any:gazetteer:n[-1..1] word[0]", lexicons=lexicons)
    tokens, offsets = ["by", "Peter", "Blackburn", "today", "."], np.array([0, 5])
    first = extractor.fit(tokens, offsets)
    listed = [["B"], ["B", "I"], ["B", "I"], ["I"], []]
    expected = [
        [*(f"any:gazetteer:n[-1..1]={value}" for value in values), f"word[0]={token}"]
        for token, values in zip(tokens, listed)
    ]
    assert texts(extractor, first) == texts(extractor, extractor.transform(tokens, offsets)) == expected


def test_a_ready_set_gets_the_tops_of_paths_where_clusters_are_paths() -> None:
    ready = next(iter(TEMPLATE_SETS))
    paths = with_lists(ready, {"b": {"EU": "0110", "the": "0111"}}, ())
    names = with_lists(ready, {"b": {"EU": "place", "the": "0111"}}, ())
    assert all("cluster:b[-2..2]" in templates for templates in (paths, names))
    assert "cluster:b:4[-1..1]" in paths
    assert "cluster:b:" not in names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        "shape",
        "word[x]",
        "wrd[0]",
        "word[2..1]",
        "word[99]",
        "word[0..1]|lower[0]",
        "prefix0[0]",
        "word[0]|",
    ],
)
def test_bad_templates_are_named(text: str) -> None:
    with pytest.raises(ParameterError, match="templates"):
        Templates.parse(text)


def test_ready_sets_are_valid_and_round_trip() -> None:
    for name in TEMPLATE_SETS:
        templates = Templates.parse(name)
        assert Templates.parse(templates.text) == templates
    assert len(Templates.parse("basic").items) == 19


def test_csr_and_extracted_features_train_alike() -> None:
    extractor = crf.Extractor(templates=TEXT)
    features = extractor.fit(*flat(SENTENCES))
    lists = [
        [texts(extractor, features)[i] for i in range(a, b)] for a, b in zip(features.offsets, features.offsets[1:])
    ]
    plain, _ = from_attributes(lists)
    codes = np.arange(features.n_tokens, dtype=np.int16) % 3
    a, b = (crf.fit(f, codes, 3, tol=1e-10).trace[-1] for f in (features, plain))
    assert a == pytest.approx(b, rel=1e-8)
