"""The page of `lasca reproduce`: blocks to Markdown and HTML, the pictures, and hostile text in all of them."""

from __future__ import annotations

import base64
import html as html_module
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from browser import AXE, chromium, media, missing, resize
from lasca.reproduce.blocks import Bullets, Heading, Page, Picture, Table, Text, plain
from lasca.reproduce.drawing import signed, ticks
from lasca.reproduce.markup import Piece, html_inline, markdown_inline, markdown_plain, pieces, tidy, words
from lasca.reproduce.render import html, markdown
from lasca.reproduce.svg import dots, heat_map, heat_maps, line_chart, tagged_sequences
from lasca.reproduce.svg_charts import _apart, _marker
from report_cases import NASTY
from reproduce_cases import ENTITIES, TAGS, TWEET, confusion, full_page, learning_curves, pictures

HOSTILE = (*NASTY, "a|b", "**bold** *it* _it_ `code`", "[x](javascript:alert(1))", "# 1. - + =", "\x1b[31mred\x07",
           "$x$ ~~s~~ https://evil.example www.evil.example", "line\nbreak\r\n| --- |", "\ud800 half", "\\| \\<b\\>",
           "![i](x)", "1. one", "---", "]]>", "' \" &amp;")  # fmt: skip
SPACE = "{http://www.w3.org/2000/svg}"


class _Reader(HTMLParser):
    """Which elements there are, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def _by_markdown(text: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


def _shown(svg: str) -> list[str]:
    """Return the texts of a picture; it must be well-formed."""
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SPACE}text")]


def _hostile_page() -> Page:
    svg = tagged_sequences([[(t, t, (t,), True) for t in HOSTILE]], title=NASTY[0])
    blocks: list[Any] = []
    for text in HOSTILE:
        blocks += [
            Heading(text),
            Heading(text, 3),
            Text(plain(text)),
            Text(f"**{plain(text)}** and [{plain(text)}](https://example.org/) end"),
            Bullets((plain(text), plain(text))),
            Table((text, text), ((text, text), ("x", "1")), plain(text), (plain(text),), frozenset({(0, 0), (0, 1)})),
        ]
    return Page(NASTY[0], (*blocks, Picture("hostile", svg, plain(NASTY[2]))))


# the tiny markup


def test_markup_is_read() -> None:
    assert list(pieces("a **b `c*`** [d](https://e.f) `g`")) == [
        Piece("a "), Piece("b ", bold=True), Piece("c*", bold=True, code=True), Piece(" "),
        Piece("d", address="https://e.f"), Piece(" "), Piece("g", code=True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["2 ** 3 ** 4", "a * b", "one ` tick", "[no](", "**open", "[x](javascript:alert)", "[x](data:text/html)"]
)
def test_what_is_not_well_formed_stands_for_itself(text: str) -> None:
    assert list(pieces(text)) == [Piece(text)]
    assert _Reader(_by_markdown(markdown_inline(text))).text.strip() == text
    assert html_inline(text) == html_module.escape(text, quote=True).replace("&quot;", "&#34;")


def test_links_lead_to_the_web_or_beside_the_page() -> None:
    for address in ("https://a.b/c?d=e&f#g", "run.md", "#top", "models/x.md", "../data/"):
        assert list(pieces(f"[x]({address})")) == [Piece("x", address=address)]
    assert html_inline('[x](https://a/"><b>)') == '<a href="https://a/%22%3E%3Cb%3E">x</a>'


@given(st.text(max_size=40))
def test_plain_text_has_no_markup(text: str) -> None:
    assert words(plain(text)) == tidy(text)
    assert [p.text for p in pieces(plain(text))] == ([text] if text else [])
    for wrapped in (f"**x{plain(text)}x**", f"[x{plain(text)}x](https://a.b)"):
        assert [p.text for p in pieces(wrapped)] == [f"x{text}x"]


@given(st.text(alphabet=st.sampled_from("\\*`[]()_<>&|#-+=~!$.:/ 1aw\n\t\x1b\"'{}^é"), max_size=24))
def test_markdown_shows_any_text_as_it_is(text: str) -> None:
    page = _Reader(_by_markdown(f"x {markdown_plain(text)} x"))
    assert page.text.strip() == f"x {tidy(text)} x"
    assert page.tags == ["p"]
    page = _Reader(_by_markdown(markdown_inline(plain(text))))
    assert page.text.strip() == tidy(text)
    assert page.tags in (["p"], [])
    page = _Reader(_by_markdown(f"| a | b |\n| --- | --- |\n| x{markdown_plain(text)}x | y |\n"))
    assert f"x{tidy(text)}x" in page.text
    assert page.tags.count("td") == 2
    assert not {"em", "strong", "a", "code", "img", "s"} & set(page.tags)


def test_control_characters_become_visible() -> None:
    assert tidy("a\x1b[31m\tb\n\u202ec\ud800\x00") == "a␛[31m b c\ufffd␀"
    assert tidy("\u202e a \u202e b") == "a b"


# blocks to Markdown


def test_every_block_in_markdown() -> None:
    page = Page(
        "Title",
        (
            Heading("A part"),
            Heading("Smaller", 3),
            Text("Words **bold** `code` [link](run.md)."),
            Bullets(("one", "**two**")),
            Table(("model", "F1"), (("DS", "65.32"), ("HC", "")), "Caption", ("Note.",), frozenset({(0, 1), (1, 1)})),
            Picture("curve", "<svg/>", "A **curve** [1]"),
        ),
    )
    assert markdown(page, pictures="images/") == (
        "# Title\n\n## A part\n\n### Smaller\n\nWords **bold** `code` [link](run.md).\n\n- one\n- **two**\n\n"
        "Caption\n\n| model | F1 |\n| :--- | ---: |\n| DS | **65.32** |\n| HC |  |\n\nNote.\n\n"
        "![A curve \\[1\\]](images/curve.svg)\n\nA **curve** \\[1\\]\n"
    )


def test_a_paragraph_cannot_begin_another_block() -> None:
    for text in ("# no", "- no", "+ no", "1. no", "12) no", "= no", "> no", "* no", "    no", "~~~", "---", "| a |"):
        page = _Reader(_by_markdown(markdown_inline(text)))
        assert page.tags == ["p"], text
        assert page.text.strip() == text.strip()


def test_hostile_text_stays_text_in_markdown() -> None:
    text = markdown(_hostile_page(), pictures="images")
    shown = _Reader(_by_markdown(text))
    assert not {"script", "em", "s", "b"} & set(shown.tags)
    assert shown.tags.count("img") == 1
    assert shown.tags.count("table") == shown.tags.count("h2") == shown.tags.count("h3") == len(HOSTILE)
    assert shown.tags.count("td") == 4 * len(HOSTILE)
    assert {v for k, v in shown.attributes if k == "href"} == {"https://example.org/"}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202e]", text)
    for hostile in HOSTILE:
        assert shown.text.count(tidy(hostile)) >= 9, hostile
    text.encode("utf-8")


# blocks to HTML


def test_every_block_in_html() -> None:
    page = Page(
        "Title",
        (
            Text("First."),
            Heading("A part"),
            Heading("Smaller & less", 3),
            Bullets(("one", "**two**")),
            Table(("model", "F1"), (("DS", "65.32"),), "Caption", ("Note.",), frozenset({(0, 1)})),
            Heading("A part"),
            Picture("curve", pictures()["bands"], "A `curve`"),
        ),
    )
    text = html(page)
    body = text[text.index("<body") :]
    assert "<h1><bdi>Title</bdi></h1>" in body
    assert '<li class="level-2"><a href="#s-a-part">A part</a></li>' in body
    assert '<li class="level-3"><a href="#s-smaller-less">Smaller &amp; less</a></li>' in body
    assert '<li class="level-2"><a href="#s-a-part-2">A part</a></li>' in body
    assert '<h3 id="s-smaller-less">Smaller &amp; less</h3>' in body
    assert '<ul class="bullets"><li>one</li><li><strong>two</strong></li></ul>' in body
    assert '<th scope="col">model</th><th scope="col" class="n">F1</th>' in body
    assert '<th scope="row"><bdi>DS</bdi></th><td class="n best">65.32</td>' in body
    assert "<figcaption>Caption</figcaption>" in body
    assert '<ul class="notes"><li>Note.</li></ul>' in body
    assert pictures()["bands"] in body
    assert "<figcaption>A <code>curve</code></figcaption>" in body
    assert body.count("<section") == 3
    ids = [v for k, v in _Reader(text).attributes if k == "id"]
    assert len(ids) == len(set(ids))


def test_hostile_text_stays_text_in_html() -> None:
    text = html(_hostile_page())
    shown = _Reader(text)
    assert not {"script", "img", "b", "iframe"} & set(shown.tags)
    assert not [k for k, _ in shown.attributes if k.startswith("on")]
    assert {v for k, v in shown.attributes if k == "href" and not str(v).startswith("#")} == {"https://example.org/"}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202e]", text)
    for hostile in HOSTILE:
        assert shown.text.count(tidy(hostile)) >= 10, hostile
    text.encode("utf-8")


def test_the_page_stands_alone() -> None:
    text = html(full_page())
    assert "script" not in _Reader(text).tags
    assert not re.search(r"@import|url\(|<link|src=", text)
    assert "default-src 'none'" in text


def test_the_same_bytes_every_time() -> None:
    code = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1]); from reproduce_cases import full_page;"
        "from lasca.reproduce.render import html, markdown; p = full_page();"
        "print(hashlib.sha256((html(p) + markdown(p, pictures='i')).encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1] / "src")},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1


def test_faulty_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 3 cells, the header has 2"):
        Table(("a", "b"), (("x", "1"), ("y", "1", "2")))
    with pytest.raises(ValueError, match="file name"):
        Picture("../x", "", "")
    with pytest.raises(ValueError, match="level"):
        Heading("x", 1)


# pictures


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


# in a real browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, page in {"full": full_page(), "hostile": _hostile_page()}.items():
        path = folder / f"{name}.html"
        path.write_text(html(page), encoding="utf-8")
        found[name] = path.as_uri()
    return found


@pytest.mark.parametrize("width", [400, 800, 1600])
@pytest.mark.parametrize("name", ["full", "hostile"])
def test_nothing_overflows(browser: Any, addresses: dict[str, str], name: str, width: int) -> None:
    resize(browser, width)
    media(browser)
    browser.get(addresses[name])
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.hacked === undefined")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = browser.execute_script(
        """return [...document.body.querySelectorAll('*')]
          .filter(e => !e.closest('.scroll > *, .skip') && e.getBoundingClientRect().right > innerWidth + 1)
          .map(e => e.tagName + '.' + e.className)"""
    )
    assert outside == []
    if width == 400 and name == "full":
        boxes = browser.execute_script(
            "return [...document.querySelectorAll('.numbers .scroll')].map(e => [e.scrollWidth, e.clientWidth])"
        )
        assert boxes[0][0] > 1000 > 400 > boxes[0][1]


def test_texts_in_pictures_fit(browser: Any, addresses: dict[str, str]) -> None:
    resize(browser, 1280)
    media(browser)
    browser.get(addresses["full"])
    cut = browser.execute_script(
        """return [...document.querySelectorAll('svg text')].filter(t => {
          const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();
          return a.left < b.left || a.right > b.right || a.top < b.top || a.bottom > b.bottom;
        }).map(t => t.textContent)"""
    )
    assert cut == []


def test_light_dark_and_print(browser: Any, addresses: dict[str, str]) -> None:
    def colours() -> list[str]:
        return list(
            browser.execute_script(
                "const c = (s, p) => getComputedStyle(document.querySelector(s))[p];"
                "return [c('body', 'backgroundColor'), c('body', 'color'), c('svg rect', 'fill'),"
                "  c('svg text', 'fill')]"
            )
        )

    resize(browser, 1280)
    media(browser, "light")
    browser.get(addresses["full"])
    light = colours()
    assert light[0] == light[2]
    assert light[1] == light[3]
    picture = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    media(browser, "dark")
    dark = colours()
    assert all(a != b for a, b in zip(light, dark))
    assert dark[0] == dark[2]
    assert base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]) != picture
    media(browser, "dark", "print")
    assert colours()[1:] == light[1:]
    assert not browser.find_element("css selector", "nav").is_displayed()
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    media(browser)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (400, "light")])
def test_axe_finds_no_fault(browser: Any, addresses: dict[str, str], width: int, scheme: str) -> None:
    if not AXE.is_file():
        missing("there is no axe-core")
    resize(browser, width)
    media(browser, scheme)
    browser.get(addresses["full"])
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    result = browser.execute_async_script("axe.run(document).then(arguments[arguments.length - 1])")
    faults = [
        f"{v['id']}: {v['nodes'][0]['html'][:200]} – {v['nodes'][0].get('failureSummary', '')[:300]}"
        for v in result["violations"]
        if v["impact"] in ("serious", "critical", "moderate")
    ]
    assert faults == []
