"""The page of `lasca reproduce` in a real browser: nothing overflows, light, dark and print, axe finds no fault."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from browser import AXE, chromium, media, missing, resize
from lasca.reproduce.render import html
from reproduce_cases import full_page, hostile_page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, page in {"full": full_page(), "hostile": hostile_page()}.items():
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
