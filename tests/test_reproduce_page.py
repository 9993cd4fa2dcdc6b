"""The page of `lasca reproduce`: the tiny markup, blocks to Markdown and to HTML, and hostile text in all of them."""

from __future__ import annotations

import html as html_module
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lasca.reproduce.blocks import Bullets, Heading, Page, Picture, Table, Text, plain
from lasca.reproduce.markup import Piece, html_inline, markdown_inline, markdown_plain, pieces, tidy, words
from lasca.reproduce.render import html, markdown
from reproduce_cases import HOSTILE, full_page, hostile_page, pictures


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
    text = markdown(hostile_page(), pictures="images")
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
    text = html(hostile_page())
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
