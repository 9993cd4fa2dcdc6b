"""Open registries: built-in names stay, plug-ins come after them, and a broken one breaks nothing."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from lasca import formats, plugins
from lasca.errors import LascaWarning, ParameterError, PluginError
from lasca.plugins import Registry
from lasca.tagger import TAGGERS, Examples, Tagger
from lasca.truth.text_models import TEXT_MODELS


def registry(monkeypatch: pytest.MonkeyPatch, **points: str) -> Registry[Any]:
    found = [EntryPoint(name.replace("_", "-"), value, "lasca.things") for name, value in points.items()]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found if group == "lasca.things" else [])
    return Registry(
        "lasca.things", {"one": 1, "two": 2}, lambda name, reference: plugins.load_object(reference), "thing"
    )


def test_plug_ins_come_after_what_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    things = registry(monkeypatch, zeta="math:tau", alpha="math:pi")
    assert list(things) == ["one", "two", "alpha", "zeta"]
    assert things["alpha"] == pytest.approx(3.14159, abs=1e-5)
    assert [name for name in things if name not in things.built_in] == ["alpha", "zeta"]
    assert "alpha" in things
    assert "beta" not in things
    with pytest.raises(KeyError):
        things["beta"]


def test_built_in_names_are_not_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    things = registry(monkeypatch, one="math:pi")
    with pytest.warns(LascaWarning, match=r"'one' of a plug-in \(math:pi\) is left out: the name is built in"):
        assert list(things) == ["one", "two"]
    assert things["one"] == 1
    again = registry(monkeypatch, one="math:pi")
    with pytest.warns(LascaWarning, match="'one' of a plug-in"):  # also if it is asked for by name only
        assert again["one"] == 1


def test_a_broken_plug_in_is_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    things = registry(monkeypatch, broken="math:nothing", fine="math:pi")
    with pytest.raises(PluginError, match="'broken' of a plug-in cannot be loaded"):
        things["broken"]
    with pytest.warns(LascaWarning, match="'broken'"):
        assert list(things) == ["one", "two", "fine"]


def test_a_reader_of_a_plug_in_that_fails_when_asked_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = formats.Reader("odd", "tests.test_plugins:Odd", plugin=True)
    monkeypatch.setattr("lasca.formats.choose.load_object", lambda reference: Odd)
    with pytest.warns(LascaWarning, match="the plug-in for odd .* failed: ZeroDivisionError"):
        assert reader.sniff([]) == 0.0


class Odd:
    @staticmethod
    def sniff(files: object) -> float:
        return 1 / 0

    @staticmethod
    def read(files: object) -> list[str]:
        return ["no corpus"]


def test_a_reader_of_a_plug_in_must_return_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = formats.Reader("odd", "tests.test_plugins:Odd", plugin=True)
    monkeypatch.setattr("lasca.formats.choose.load_object", lambda reference: Odd)
    with pytest.raises(PluginError, match=r"plug-in for odd must return a CrowdCorpus \(got: list\)"):
        reader([])


def test_a_format_that_cannot_be_loaded_says_why_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Registry("lasca.things", formats.READERS.built_in, formats.choose.reader_of, "format")
    found = [EntryPoint("half", f"{__name__}:Half", "lasca.things")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    monkeypatch.setattr(formats, "READERS", broken)
    with pytest.raises(PluginError, match=r"'half' of a plug-in cannot be loaded: .* has read, but no sniff"):
        formats.read("here.half", "half")
    with (
        pytest.warns(LascaWarning, match="has read, but no sniff"),
        pytest.raises(ParameterError, match="format must be"),
    ):
        formats.read("here.half", "haf")


class Half:
    read = Odd.read


def test_a_tagger_without_save_is_refused_before_it_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    taggers = Registry("lasca.things", {}, TAGGERS.make, "text model")
    found = [EntryPoint("brief", f"{__name__}:Brief", "lasca.things")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    with pytest.raises(PluginError, match="Brief has no save, load"):
        taggers["brief"]


def test_a_text_model_that_is_half_a_tagger_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    models = Registry("lasca.things", {}, TEXT_MODELS.make, "text model")
    found = [EntryPoint("mute", f"{__name__}:Mute", "lasca.things")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    with pytest.raises(PluginError, match="Mute has neither `prepare` nor `fit_targets` and `predict_proba`"):
        models["mute"]


class Mute:
    fit_targets = Odd.read


class Brief(Tagger):
    kind = "brief"

    def _learn(self, examples: Examples, progress: Any) -> None:
        pass
