"""Make docs/images/report-*.png: report and review of the demo in real Chromium. Run by `make screenshots`."""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import chromium, media, resize  # noqa: E402

WIDTH = 1180
LARGEST = 300_000


def shot(browser: Any, selector: str, name: str, height: int, *, above: int = 0, beyond: bool = True) -> None:
    """Save the part of the page that begins at an element."""
    top = browser.execute_script(
        "return document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY", selector
    )
    clip = {"x": 0, "y": max(top - above, 0), "width": WIDTH, "height": height, "scale": 1}
    found = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": beyond, "clip": clip}
    )
    data = base64.b64decode(found["data"])
    if len(data) > LARGEST:
        raise SystemExit(f"report-{name}.png has {len(data):,} bytes, more than {LARGEST:,}")
    path = ROOT / "docs" / "images" / f"report-{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sys.stdout.write(f"{path.relative_to(ROOT)}: {len(data):,} bytes\n")


def main() -> None:
    """Run the demo, open its report, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        subprocess.run([sys.executable, "-m", "lasca", "demo", "-o", str(out)], check=True, stdout=subprocess.DEVNULL)
        with chromium(Path(folder) / "profile") as browser:
            resize(browser, WIDTH, 900)
            media(browser)
            browser.get((out / "report.html").as_uri())
            shot(browser, "body", "summary", 900)
            shot(browser, "#ambiguous", "ambiguous", 640)
            browser.execute_script("document.querySelector('#confused-pairs button').click()")
            shot(browser, "#confusion", "confusion", 700)
            media(browser, "dark")
            shot(browser, "#clusters" if browser.find_elements("id", "clusters") else "#labels", "dark", 620)
            media(browser)
            review(browser, out)


def review(browser: Any, folder: Path) -> None:
    """Open the review of a run and take docs/images/report-review.png."""
    command = [sys.executable, "-m", "lasca", "review", str(folder), "--refit", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            browser.get(server.stdout.readline().split()[-1])
            for _ in range(300):
                if browser.find_elements("css selector", "#candidates button"):
                    break
                time.sleep(0.1)
            shot(browser, "body", "review", 640, beyond=False)  # rows of the list are drawn when they come into sight
        finally:
            server.kill()


if __name__ == "__main__":
    main()
