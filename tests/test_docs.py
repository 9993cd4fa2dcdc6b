"""Documents are executed: code blocks run, every command and public name is documented, cli.md is up to date."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

import lasca

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text("utf-8"))], ids=lambda p: p.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCK.findall(page.read_text("utf-8")), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def test_every_public_name_is_documented() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    missing = [name for name in lasca.__all__ if not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_every_model_has_a_page() -> None:
    from lasca.truth import MODEL_NAMES, model_class

    text = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs" / "models").glob("*.md"))
    for name in MODEL_NAMES:
        assert model_class(name).__name__ in text, name


@pytest.mark.parametrize("name", ["cli", "formats"])
def test_made_pages_are_up_to_date(name: str) -> None:
    made = runpy.run_path(str(ROOT / "docs" / f"make_{name}.py"))["page"]()
    assert (ROOT / "docs" / f"{name}.md").read_text("utf-8") == made, "run: make docs"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} points at {target}"


def test_help_does_not_load_numba() -> None:
    import subprocess

    code = "import sys, lasca, lasca.cli.commands; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
