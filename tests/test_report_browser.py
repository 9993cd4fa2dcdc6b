"""The report in real headless Chromium: it loads, works by mouse and keyboard, fits, escapes, and can be accessed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import AXE, chromium, media, missing, resize
from report_cases import NASTY, case_of, demo_case, nasty_corpus


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    scores = {"accuracy": 0.9, "precision": 0.8, "recall": 0.7, "f1": 0.75, "macro_f1": 0.5}
    scores |= {"cross_entropy": 0.2, "ece": 0.01, "n_tokens": 10}
    models = [{"model": m, "scores": {"all": scores}, "cpu_seconds": 1.0, "warnings": []} for m in ("mv", "ds")]
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "demo": demo_case().page(models=models, record={"command": "lasca run demo -o OUT", "warnings": ["a warning"]}),
        "nasty": case_of(nasty_corpus(), "mv", "vote-entropy", fraction=1.0).page(
            title=NASTY[0], record={"warnings": list(NASTY)}
        ),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


@pytest.fixture
def page(browser: Any, pages: dict[str, str]) -> Any:
    """The demo's page, fresh, at 1,280 pixels."""
    resize(browser, 1280)
    media(browser)
    browser.get(pages["demo"])
    return browser


def _find(browser: Any, selector: str) -> list[Any]:
    return list(browser.find_elements("css selector", selector))


def _click(browser: Any, element: Any) -> None:
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def _column(browser: Any, number: int) -> list[str]:
    cells = f"#annotator-table tbody tr > :nth-child({number})"
    return browser.execute_script(f"return [...document.querySelectorAll('{cells}')].map(c => c.dataset.sort)")


def test_it_loads_without_an_error_and_asks_for_nothing(page: Any) -> None:
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)") == []
    assert page.execute_script("return document.querySelectorAll('#tokens > li').length") == 25
    assert page.find_element("id", "found").text == "417 found, 25 shown"


def test_tables_sort_by_mouse_and_by_keyboard(page: Any) -> None:
    before = [float(x) for x in _column(page, 3)]
    assert before == sorted(before, reverse=True)
    heads = _find(page, "#annotator-table thead th")
    _click(page, heads[1].find_element("tag name", "button"))
    volume = [int(x) for x in _column(page, 2)]
    assert volume == sorted(volume, reverse=True)
    assert heads[1].get_attribute("aria-sort") == "descending"
    assert heads[2].get_attribute("aria-sort") is None
    _click(page, heads[1].find_element("tag name", "button"))
    assert [int(x) for x in _column(page, 2)] == sorted(volume)
    page.execute_script("arguments[0].focus()", heads[0].find_element("tag name", "button"))
    page.switch_to.active_element.send_keys("\ue007")  # Enter
    names = _column(page, 1)
    assert names == sorted(names)
    assert heads[0].get_attribute("aria-sort") == "ascending"


def test_filter_by_labels_and_search(page: Any) -> None:
    option = _find(page, "#pair option")[1]
    value, words = option.get_attribute("value"), option.text
    n = int(words.rsplit("(", 1)[1].rstrip(")"))
    page.execute_script(
        "const s = document.getElementById('pair'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", value
    )
    assert page.find_element("id", "found").text.startswith(f"{n} found")
    first, second = words.split(" (")[0].split(" / ")
    for item in _find(page, "#tokens > li"):
        chips = {chip.text for chip in item.find_elements("css selector", ".candidates .chip")}
        assert {first, second} <= chips
    search = page.find_element("id", "search")
    search.send_keys("no such word anywhere")
    assert page.find_element("id", "found").text == "nothing found"
    assert _find(page, "#tokens > li") == []
    search.clear()
    page.execute_script("const s = document.getElementById('pair'); s.value = ''; s.dispatchEvent(new Event('change'))")
    word = _find(page, "#tokens mark")[0].text
    search.send_keys(word.upper())
    items = _find(page, "#tokens > li")
    assert items
    assert all(word.lower() in item.text.lower() for item in items)


def test_show_more(page: Any) -> None:
    more = page.find_element("id", "more")
    _click(page, more)
    assert page.find_element("id", "found").text == "417 found, 50 shown"
    assert (
        page.execute_script("return [...document.getElementById('tokens').children].indexOf(document.activeElement)")
        == 25
    )


def test_examples_of_confused_labels(page: Any) -> None:
    cell = _find(page, "#confusion-map button")[0]
    _click(page, cell)
    key = cell.get_attribute("data-pair")
    assert cell.get_attribute("aria-pressed") == "true"
    assert 1 <= len(_find(page, "#examples li.token")) <= 6
    button = [b for b in _find(page, "#examples button") if b.text == "Show all in the list"]
    if button:
        _click(page, button[0])
        assert page.find_element("id", "pair").get_attribute("value") == key
    _click(page, cell)
    assert cell.get_attribute("aria-pressed") == "false"
    assert _find(page, "#examples li.token") == []


def test_a_dot_leads_to_its_row(page: Any) -> None:
    point = _find(page, ".point")[0]
    page.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", point)
    chosen = _find(page, "tr.chosen")
    assert [row.get_attribute("id") for row in chosen] == [f"annotator-{point.get_attribute('data-row')}"]


def test_light_and_dark(page: Any) -> None:
    def paper() -> str:
        return str(page.execute_script("return getComputedStyle(document.body).backgroundColor"))

    light = paper()
    theme = page.find_element("id", "theme")
    theme.click()
    dark = paper()
    assert dark != light
    assert theme.text == "Light"
    theme.click()
    assert paper() == light
    page.refresh()
    media(page, "dark")
    assert paper() == dark


@pytest.mark.parametrize("width", [400, 800, 1600])
@pytest.mark.parametrize("name", ["demo", "nasty"])
def test_nothing_overflows(browser: Any, pages: dict[str, str], name: str, width: int) -> None:
    resize(browser, width)
    media(browser)
    browser.get(pages[name])
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    for cell in _find(browser, "#confusion-map button")[:1]:
        browser.execute_script("arguments[0].click()", cell)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    outside = browser.execute_script(
        """const inScroller = (e) => e.closest('.scroll, pre, .sr, .skip, .candidates .chip');
        return [...document.body.querySelectorAll('*')]
          .filter(e => !inScroller(e) && e.getBoundingClientRect().right > innerWidth + 1)
          .map(e => e.tagName + '.' + e.className)"""
    )
    assert outside == []


def test_a_corpus_full_of_scripts_shows_as_text(browser: Any, pages: dict[str, str]) -> None:
    resize(browser, 1280)
    browser.get(pages["nasty"])
    assert browser.get_log("browser") == []
    for cell in _find(browser, "#confusion-map button")[:1]:
        browser.execute_script("arguments[0].click()", cell)
    assert browser.execute_script("return window.hacked === undefined")
    assert browser.execute_script("return document.images.length") == 0
    assert browser.execute_script("return document.scripts.length") == 2
    assert browser.find_element("tag name", "h1").text == NASTY[0]
    shown = {mark.text for mark in _find(browser, "#tokens mark")}
    assert {NASTY[0], NASTY[1], NASTY[2], NASTY[5]} <= shown
    assert any(NASTY[0] in name.text for name in _find(browser, "#annotator-table tbody th"))


def _axe(browser: Any) -> list[str]:
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    result = browser.execute_async_script("axe.run(document).then(arguments[arguments.length - 1])")
    return [
        f"{v['id']} ({v['impact']}): {v['nodes'][0]['html'][:200]} – {v['nodes'][0].get('failureSummary', '')[:300]}"
        for v in result["violations"]
        if v["impact"] in ("serious", "critical", "moderate")
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (400, "light")])
@pytest.mark.parametrize("name", ["demo", "nasty"])
def test_axe_finds_no_fault(browser: Any, pages: dict[str, str], name: str, width: int, scheme: str) -> None:
    if not AXE.is_file():
        missing("there is no axe-core")
    resize(browser, width)
    media(browser, scheme)
    browser.get(pages[name])
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    for cell in _find(browser, "#confusion-map button")[:1]:
        browser.execute_script("arguments[0].click()", cell)
    assert _axe(browser) == []


def test_axe_would_find_a_fault(page: Any) -> None:
    if not AXE.is_file():
        missing("there is no axe-core")
    page.execute_script(
        "document.querySelector('#search').parentElement.replaceWith(document.querySelector('#search'))"
    )
    page.execute_script("document.querySelector('#search').removeAttribute('placeholder')")
    assert any(fault.startswith("label ") for fault in _axe(page))


def test_it_prints(page: Any, tmp_path: Path) -> None:
    media(page, "dark", "print")
    assert not page.find_element("css selector", "nav").is_displayed()
    assert page.execute_script("return getComputedStyle(document.body).color") == "rgb(27, 28, 31)"
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/") + pdf.count(b"/Type /Page ") <= 40
    media(page)


def test_every_control_can_be_reached_and_has_a_name(page: Any) -> None:
    controls = "button, select, input, a[href], summary, [tabindex='0']"
    nameless = page.execute_script(
        f"""return [...document.querySelectorAll("{controls}")].filter(e => {{
          const name = e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim();
          return !name || e.tabIndex < 0;
        }}).map(e => e.outerHTML.slice(0, 100))"""
    )
    assert nameless == []
