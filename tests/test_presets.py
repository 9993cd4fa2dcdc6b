"""Presets: the paper's own chain by one name, step by step what its parts give; options beside a preset win."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import lasca.cli.commands  # noqa: F401  registers the verbs
from lasca import simulate
from lasca.ambiguity import find_ambiguity
from lasca.cli.app import app
from lasca.confusion import label_confusion
from lasca.corpus import CrowdCorpus
from lasca.defaults import PRESETS
from lasca.errors import ParameterError
from lasca.pipeline.way import run
from lasca.tagger import CrfTagger, load_tagger
from lasca.truth import model_class

SHORT: dict[str, Any] = {"n_chains": 2, "n_warmup": 10, "n_samples": 10, "n_clusters": 2}
LITERAL = {"priors": "paper", "shared": "unanimous"}


@pytest.fixture(scope="module")
def small() -> CrowdCorpus:
    return simulate.demo_crowd("pos").select(sequences=np.arange(50))


@pytest.mark.parametrize(
    ("preset", "own", "scaling"), [("la-sca", {}, "corrected"), ("la-sca-literal", LITERAL, "paper")]
)
def test_the_papers_chain_step_by_step(small: CrowdCorpus, preset: str, own: dict[str, Any], scaling: str) -> None:
    done = run(small, preset=preset, params=SHORT, seed=3)
    truth = model_class("hc")(**SHORT, **own, seed=3).fit(small)
    ambiguity = find_ambiguity(small, truth, "rank-1", 0.10, scaling=scaling)
    confusion = label_confusion(small, truth, ambiguity)
    tagger = CrfTagger(objective="cost-sensitive", confusion=confusion, seed=3).fit(small, truth)
    assert np.array_equal(done.truth.proba, truth.proba)
    assert done.truth.clusters is not None
    assert truth.clusters is not None
    assert np.array_equal(done.truth.clusters.shared, truth.clusters.shared)
    assert np.array_equal(done.ambiguity.score, ambiguity.score, equal_nan=True)
    assert np.array_equal(done.confusion.matrix, confusion.matrix)
    assert done.tagger.trace == tagger.trace
    asked = done.record["parameters"]
    assert (asked["preset"], asked["method"], asked["objective"]) == (preset, "rank-1", "cost-sensitive")
    assert {name: asked["model_parameters"][name] for name in own} == own


def test_what_is_said_beside_a_preset_wins(small: CrowdCorpus) -> None:
    ours = {"model": "ds", "method": "two-truths", "objective": "softmax-margin"}
    said = run(small, preset="la-sca-literal", fraction=0.2, **ours)
    plain = run(small, model="ds", fraction=0.2)
    assert np.array_equal(said.truth.proba, plain.truth.proba)
    assert np.array_equal(said.ambiguity.score, plain.ambiguity.score, equal_nan=True)
    assert said.tagger.trace == plain.tagger.trace


def test_parameters_of_the_tagger(small: CrowdCorpus) -> None:
    done = run(small, model="mv", objective="likelihood", tagger={"templates": "lower[0]", "l2": 0.1})
    truth = model_class("mv")().fit(small)
    assert done.tagger.trace == CrfTagger(templates="lower[0]", l2=0.1).fit(small, truth).trace
    assert "--tagger 'templates=lower[0]' --tagger l2=0.1" in done.record["command"]


def test_the_command_of_the_record_does_it_again(small: CrowdCorpus, tmp_path: Path) -> None:
    small.save(tmp_path / "crowd")
    words = ["run", str(tmp_path / "crowd"), "-o", str(tmp_path / "out"), "--preset", "la-sca", "--tagger", "l2=0.2"]
    words += [word for name, value in SHORT.items() for word in ("--param", f"{name}={value}")]
    assert CliRunner().invoke(app, words).exit_code == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    again = shlex.split(record["command"])[1:]
    again[again.index("OUT")] = str(tmp_path / "again")
    assert CliRunner().invoke(app, again).exit_code == 0
    other = json.loads((tmp_path / "again" / "run.json").read_text())
    assert other["parameters"] == record["parameters"]
    weights = Path("tagger") / "weights.safetensors"
    assert (tmp_path / "out" / weights).read_bytes() == (tmp_path / "again" / weights).read_bytes()


def test_training_from_a_run_takes_the_confusion_it_found(small: CrowdCorpus, tmp_path: Path) -> None:
    """Another tagger of the same run learns with the same costs: rank-1's here, not those of two-truths."""
    done = run(small, output=tmp_path / "out", preset="la-sca", model="ds")
    words = ["train", str(tmp_path / "out"), "-o", str(tmp_path / "t"), "--objective", "cost-sensitive", "-p", "l2=0.2"]
    assert CliRunner().invoke(app, words).exit_code == 0
    by_hand = CrfTagger(objective="cost-sensitive", confusion=done.confusion, l2=0.2).fit(done.corpus, done.truth)
    other = label_confusion(small, done.truth, find_ambiguity(small, done.truth))
    assert not np.array_equal(other.matrix, done.confusion.matrix)
    assert load_tagger(tmp_path / "t").trace == by_hand.trace


def test_mistakes_are_told_before_anything_is_read() -> None:
    with pytest.raises(ParameterError, match=", ".join(PRESETS)):
        run("no such file", preset="la")
    with pytest.raises(ParameterError, match="l2"):
        run("no such file", tagger={"penalty": 1})
    with pytest.raises(ParameterError, match="objective of the run"):
        run("no such file", tagger={"objective": "likelihood"})
