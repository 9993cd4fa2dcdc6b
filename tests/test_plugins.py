"""Open registries: built-in names stay, plug-ins come after them, and a broken one breaks nothing."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from lasca import formats, plugins
from lasca.errors import LascaWarning, PluginError
from lasca.plugins import Registry


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
