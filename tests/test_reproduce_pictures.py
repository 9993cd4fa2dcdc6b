"""The pictures of `lasca reproduce`: what they show, in which order and place, and hostile text in them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasca.reproduce.drawing import signed, ticks
from lasca.reproduce.svg import dots, heat_map, heat_maps, line_chart, tagged_sequences
from lasca.reproduce.svg_charts import _apart, _marker
from reproduce_cases import ENTITIES, HOSTILE, TAGS, TWEET, confusion, learning_curves, pictures

SPACE = "{http://www.w3.org/2000/svg}"


def _shown(svg: str) -> list[str]:
    """Return the texts of a picture; it must be well-formed."""
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SPACE}text")]


@pytest.mark.parametrize("name", list(pictures()))
def test_pictures_are_well_formed_and_apart_from_one_another(name: str) -> None:
    svg = pictures()[name]
    root = ET.fromstring(svg)
    assert root.tag == f"{SPACE}svg"
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    assert root.attrib["viewBox"] == f"0 0 {width} {height}"
    assert root.attrib["aria-label"]
    classes = {e.attrib["class"] for e in root.iter() if "class" in e.attrib}
    prefix = {c.split("-")[0] for c in classes}
    assert len(prefix) == 1
    style = next(root.iter(f"{SPACE}style")).text or ""
    light, dark = style.split("@media screen and (prefers-color-scheme:dark)")
    for part in (light, dark):
        assert set(re.findall(r"\.([a-z0-9-]+)\{", part)) == classes
    assert not re.search(r"url\(|href|<script", svg)
    others = {other for key, text in pictures().items() if key != name for other in re.findall(r"p[0-9a-f]{8}-", text)}
    assert f"{prefix.pop()}-" not in others
    for element in root.iter(f"{SPACE}text"):
        assert 0 <= float(element.attrib["x"]) <= width
        assert 0 <= float(element.attrib["y"]) <= height


def test_heat_map_writes_the_values() -> None:
    svg = heat_map([[0.742, 0.258], [np.nan, 1.0]], ["A", "B"], title="T", row_title="true", column_title="given")
    assert _shown(svg)[:1] == ["T"]
    assert {".74", ".26", "1.00", "true", "given", "A", "B"} <= set(_shown(svg))
    assert ".00" not in _shown(svg)
    cells = [e for e in ET.fromstring(svg).iter(f"{SPACE}rect") if e.attrib["width"] == "35"]
    assert len(cells) == 4
    assert sum("stroke-dasharray" in c.attrib for c in cells) == 1
    assert _shown(heat_map(np.full((14, 14), 0.77), [f"L{i}" for i in range(14)], title="")).count(".77") == 1  # legend


def test_heat_map_colours_by_the_highest() -> None:
    def steps(highest: float | None) -> list[str]:
        svg = heat_map([[0.0, 0.2], [0.05, 0.0]], ["A", "B"], title="", highest=highest)
        found = ET.fromstring(svg).iter(f"{SPACE}rect")
        return [e.attrib["class"].split("-")[1] for e in found if e.attrib.get("width") == "35"]

    assert steps(None) == ["g0", "w9", "w5", "g0"]
    assert steps(1.0) == ["g0", "w4", "w2", "g0"]


def test_heat_maps_share_one_legend_and_wrap() -> None:
    svg = heat_maps([(f"cluster {i}", confusion(12, 0.8, i)) for i in range(5)], TAGS, title="Five")
    assert {f"cluster {i}" for i in range(5)} <= set(_shown(svg))
    assert _shown(svg).count("another label") == 1
    root = ET.fromstring(svg)
    assert int(root.attrib["width"]) <= 940
    assert int(root.attrib["height"]) > 1200
    one_row = ET.fromstring(heat_maps([(str(i), confusion(9, 0.7)) for i in range(3)], ENTITIES, title=""))
    assert int(one_row.attrib["height"]) < 420
    with pytest.raises(ValueError, match="square"):
        heat_maps([("x", np.ones((2, 3)))], ["A", "B"], title="")


def test_lines_are_told_apart_without_colour() -> None:
    svg = line_chart(learning_curves(9), title="T", x_title="x", y_title="y", x_marks=(1, 15))
    root = ET.fromstring(svg)
    lines = [e for e in root.iter(f"{SPACE}path") if e.attrib.get("stroke-width") == "2"]
    assert len({e.attrib["class"] for e in lines}) == 9
    outlines = {_marker(kind, 0, 0) for kind in range(9)}
    assert len(outlines) == 9
    assert len({e.attrib.get("stroke-dasharray") for e in lines}) >= 8
    places = sorted(float(e.attrib["y"]) for e in root.iter(f"{SPACE}text") if e.text in learning_curves(9))
    assert len(places) == 9
    assert min(np.diff(places)) >= 15.9


def test_lines_with_gaps_single_points_and_nothing() -> None:
    nan = float("nan")
    svg = line_chart(
        {"gap": [(1, 0.5, 0.1), (2, nan, nan), (3, 0.7, nan)], "one": [(2, 0.6, 0.0)], "none": [(1, nan, 0)]},
        title="T", x_title="x", y_title="y",
    )  # fmt: skip
    assert {"gap", "one"} <= set(_shown(svg))
    assert "none" not in _shown(svg)
    assert "nan" not in svg
    assert "nothing was measured" in _shown(line_chart({}, title="T", x_title="x", y_title="y"))
    same = line_chart({"flat": [(1, 2.0, 0), (1, 2.0, 0)]}, title="T", x_title="x", y_title="y")
    assert "nan" not in same
    assert "inf" not in same


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6).map(sorted))
def test_names_stay_apart_in_order_and_inside(wanted: list[float]) -> None:
    found = _apart(wanted, 16, 0, 100)
    assert all(b - a >= 16 - 1e-9 for a, b in pairwise(found))
    assert found[0] >= -1e-9
    assert found[-1] <= 100 + 1e-9
    if all(b - a >= 16 for a, b in pairwise(wanted)):
        assert found == pytest.approx(wanted)


def test_dots_show_which_differences_are_clear() -> None:
    svg = dots([("up", 1.0, 0.5, 1.5), ("unsure", 0.1, -0.4, 0.6), ("down", -1, -2, -0.5), ("none", *[np.nan] * 3)],
               title="T", x_title="points")  # fmt: skip
    shown = _shown(svg)
    assert {"up", "+1.00 [+0.50, +1.50]", "+0.10 [−0.40, +0.60]", "−1.00 [−2.00, −0.50]", "–", "points"} <= set(shown)
    hollow = [e for e in ET.fromstring(svg).iter(f"{SPACE}path") if e.attrib["class"].endswith("s-muted")
              and e.attrib["d"].endswith("Z")]  # fmt: skip
    assert len(hollow) == 1
    plain_axis = dots([("a", 5.0, 4.0, 6.0)], title="T", x_title="x", zero=False)
    assert "0" not in _shown(plain_axis)
    assert "nothing was measured" in _shown(dots([], title="T", x_title="x"))


def test_sequences_wrap_and_mark_what_is_ambiguous() -> None:
    root = ET.fromstring(tagged_sequences([TWEET, TWEET[:2]], title="T"))
    texts = [(e.text, float(e.attrib["x"]), float(e.attrib["y"])) for e in root.iter(f"{SPACE}text")]
    rows = sorted({y for text, _, y in texts if text in {t[0] for t in TWEET}})
    assert len(rows) == 3
    assert [text for text, _, _ in texts].count("or PRON") == 1
    marked = [e for e in root.iter(f"{SPACE}rect") if e.attrib["class"].endswith("-mark")]
    assert len(marked) == sum(ambiguous for *_, ambiguous in TWEET)
    assert all(x < 760 for _, x, _ in texts)
    ET.fromstring(tagged_sequences([[], [("", "", (), False)]], title=""))


def test_hostile_text_in_pictures() -> None:
    for text in HOSTILE:
        for svg in (
            heat_map([[1.0]], [text], title=text, row_title=text, column_title=text),
            heat_maps([(text, [[1.0]])], [text], title=text),
            line_chart({text: [(1, 1, 1)]}, title=text, x_title=text, y_title=text),
            tagged_sequences([[(text, text, (text,), True)]], title=text),
            dots([(text, 1, 0, 2)], title=text, x_title=text),
        ):
            root = ET.fromstring(svg.encode("utf-8"))
            assert {e.tag.removeprefix(SPACE) for e in root.iter()} <= {"svg", "style", "rect", "text", "path"}
            assert not [k for e in root.iter() for k in e.attrib if k.startswith("on")]
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", svg)


def test_numbers_on_axes() -> None:
    assert ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(67.2, 93.9) == [60, 70, 80, 90, 100]
    assert len(ticks(5, 5)) >= 2
    assert signed(-0.001, 2, plus=True) == "0.00"
    assert signed(-1.5, 1) == "−1.5"
    assert signed(float("nan"), 1) == "–"
