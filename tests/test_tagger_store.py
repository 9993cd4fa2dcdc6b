"""Saved taggers: the same after loading, and harmless when they come from elsewhere."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from lasca.errors import StoreError
from lasca.files import write_sums
from lasca.tagger import CrfTagger
from test_tagger import corpus, sentences


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taggers") / "one"
    CrfTagger(max_iter=20, templates="basic").fit(corpus(labels=("B-ORG",)), "gold").save(folder)
    return folder


def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def load(folder: Path) -> CrfTagger:
    """Load what somebody changed on purpose, sums and all."""
    write_sums(folder)
    return CrfTagger.load(folder)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"hash_bits": 10},
        {"constrained": False, "min_count": 2},
        {
            "templates": "word[0] cluster:c[0] gazetteer:g[0] any:lower[1..2] shape[-1]|shape[0]",
            "clusters": {"c": {"Rome": "1", "Ä\ud800": "2"}},
            "gazetteers": {"g": ["Anna Schmidt", "Oslo"]},
        },
    ],
)
def test_a_loaded_tagger_predicts_the_same(tmp_path: Path, params: dict[str, Any]) -> None:
    tagger = CrfTagger(max_iter=15, **params).fit(corpus(labels=("B-ORG",)), "gold")
    tagger.save(tmp_path / "t")
    loaded = CrfTagger.load(tmp_path / "t")
    text = [*sentences(20, seed=3)[0], [], ["Unseen", "日本", "Oslo"]]
    assert loaded.predict(text) == tagger.predict(text)
    assert loaded.labels == tagger.labels
    assert loaded.trace == tagger.trace
    for a, b in zip(loaded.predict_proba(text), tagger.predict_proba(text)):
        assert a.tobytes() == b.tobytes()
    assert loaded.get_params()["max_iter"] == 15
    loaded.save(tmp_path / "again")
    for name in ("tagger.json", "weights.safetensors"):
        again = (tmp_path / "again" / name).read_bytes()
        assert again == (tmp_path / "t" / name).read_bytes()


def test_saving_does_not_overwrite_unless_told(saved: Path) -> None:
    tagger = CrfTagger.load(saved)
    with pytest.raises(StoreError, match="not empty"):
        tagger.save(saved)
    tagger.save(saved, overwrite=True)
    assert CrfTagger.load(saved).labels == tagger.labels


def test_what_is_no_tagger_is_said_so(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no tagger to load"):
        CrfTagger.load(tmp_path / "nothing")
    folder = copy(saved, tmp_path)
    (folder / "weights.safetensors").unlink()
    with pytest.raises(StoreError, match=r"weights\.safetensors is missing"):
        CrfTagger.load(folder)
    folder = copy(saved, tmp_path / "other")
    (folder / "tagger.json").write_text("{}", encoding="utf-8")
    with pytest.raises(StoreError, match=r"tagger\.json has changed"):
        CrfTagger.load(folder)
    with pytest.raises(StoreError, match="not a tagger"):
        load(folder)
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(StoreError, match="there is no SHA256SUMS"):
        CrfTagger.load(folder)


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("version", 99, "another version"),
        ("n_labels", 10**9, "n_labels"),
        ("n_labels", 3, "wrong type or shape"),
        ("n_features", -1, "n_features"),
        ("n_features", 2**31 - 2, "wrong type or shape"),
        ("n_keys", 10**12, "n_keys"),
        ("labels", ["O"], "differ"),
        ("active", [0, 0, 0, 0], "differ"),
        ("active", [10**30], "damaged|differ"),
        ("templates", "import os", "damaged"),
        ("hash_bits", 26, "differ in their number"),
        ("hash_bits", 60, "damaged"),
        ("fields", ["nothing"], "damaged"),
        ("constraint", [[[True]], [True], [True]], "constraint"),
        ("parameters", 3, "damaged"),
        ("trace", "x", "damaged"),
    ],
)
def test_a_changed_header_is_refused(saved: Path, tmp_path: Path, key: str, value: Any, match: str) -> None:
    folder = copy(saved, tmp_path)
    header = json.loads((folder / "tagger.json").read_text(encoding="utf-8"))
    header[key] = value
    (folder / "tagger.json").write_text(json.dumps(header), encoding="utf-8")
    with pytest.raises(StoreError, match=match):
        load(folder)


@pytest.mark.parametrize("change", ["start", "label", "move", "nan", "keys", "lengths", "dtype", "missing"])
def test_changed_arrays_are_refused(saved: Path, tmp_path: Path, change: str) -> None:
    folder = copy(saved, tmp_path)
    arrays = load_file(folder / "weights.safetensors")
    if change == "start":
        arrays["feature_start"][1] = 10**12
    elif change == "label":
        arrays["feature_label"][0] = 999
    elif change == "move":
        arrays["move"][0, 0] = 10**9
    elif change == "nan":
        arrays["weights"][3] = np.nan
    elif change == "keys":
        arrays["keys/1"][0] = 10**15
    elif change == "lengths":
        arrays["values/word:lengths"][0] = 10**15
    elif change == "dtype":
        arrays["weights"] = arrays["weights"].astype(np.float32)
    else:
        del arrays["values/word:bytes"]
    save_file(arrays, folder / "weights.safetensors")
    with pytest.raises(StoreError):
        load(folder)


def test_claimed_sizes_are_checked_before_anything_is_read(saved: Path, tmp_path: Path) -> None:
    folder = copy(saved, tmp_path)
    file = folder / "weights.safetensors"
    whole = file.read_bytes()
    for bad in (b"", whole[:7], whole[:-10], whole + b"xx", struct.pack("<Q", 2**60) + whole[8:]):
        file.write_bytes(bad)
        with pytest.raises(StoreError):
            load(folder)
    listing = json.dumps({"weights": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}).encode()
    file.write_bytes(struct.pack("<Q", len(listing)) + listing)
    with pytest.raises(StoreError, match="not fully covered"):
        load(folder)


def test_random_damage_never_ends_in_anything_but_a_store_error(saved: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = copy(saved, tmp_path)
    for name in ("tagger.json", "weights.safetensors"):
        whole = (saved / name).read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            for place in rng.integers(0, min(len(data), 3000), size=3):
                data[place] = int(rng.integers(0, 256))
            (folder / name).write_bytes(bytes(data))
            with contextlib.suppress(StoreError):
                load(folder).predict([["Anna", "likes", "Rome"]])
        (folder / name).write_bytes(whole)
    assert load(folder).predict([["Anna", "likes", "Rome", "."]]) == [["B-PER", "O", "B-LOC", "O"]]
