"""A real browser for tests: Debian's Chromium without a window, driven by Selenium. See scripts/install-browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
AXE = Path(__file__).resolve().parents[1] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


def missing(what: str) -> None:
    """Skip, or fail where a browser was promised (LASCA_BROWSER=required, as in CI)."""
    message = f"{what}: run scripts/install-browser"
    if os.environ.get("LASCA_BROWSER") == "required":
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Start a browser with an empty profile; `get_log("browser")` holds its console."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        missing("there is no chromium")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        missing("there is no selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = str(binary)
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


def resize(browser: Any, width: int, height: int = 900, scale: float = 1.0) -> None:
    """Give the page a width, also one narrower than a window may be."""
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def media(browser: Any, scheme: str = "light", kind: str = "screen") -> None:
    """Ask for light or dark, screen or print."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})
