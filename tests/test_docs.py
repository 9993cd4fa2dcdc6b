"""Documents are executed: code blocks run, every command and public name is documented, cli.md is up to date."""

from __future__ import annotations

import functools
import json
import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import lasca

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


RUN_BLOCKS = """
import json, sys
class Missing:
    absent = set(json.loads(sys.argv[1]))
    def find_spec(self, name, path=None, target=None):
        if name in self.absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
names = {}
for number, block in enumerate(json.load(sys.stdin), start=1):
    exec(compile(block, f"{sys.argv[2]}, block {number}", "exec"), names)
"""


@functools.cache
def not_installed_with_lasca() -> list[str]:
    """Return the modules in this environment that `pip install .` alone does not bring."""
    needed, todo = {"lasca"}, ["lasca"]
    while todo:
        try:
            lines = metadata.requires(todo.pop()) or []
        except metadata.PackageNotFoundError:  # needed on other systems only
            continue
        plain = [re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower() for line in lines if "extra" not in line]
        todo += [name for name in plain if name not in needed]
        needed |= set(plain)
    homes = metadata.packages_distributions()
    return sorted(m for m, found in homes.items() if not {re.sub(r"[-_.]+", "-", d).lower() for d in found} & needed)


def run_blocks(blocks: list[str], name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python blocks one after the other as somebody would who installed LASCA and nothing else."""
    command = [sys.executable, "-W", "error", "-c", RUN_BLOCKS, json.dumps(not_installed_with_lasca()), name]
    return subprocess.run(
        command, input=json.dumps(blocks), text=True, capture_output=True, cwd=folder, check=False, encoding="utf-8"
    )


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text("utf-8"))], ids=lambda p: p.name)
def test_python_blocks_run_after_a_plain_install(page: Path, tmp_path: Path) -> None:
    done = run_blocks(BLOCK.findall(page.read_text("utf-8")), page.name, tmp_path)
    assert done.returncode == 0, done.stderr


def test_blocks_cannot_use_what_is_not_installed(tmp_path: Path) -> None:
    assert {"pandas", "polars", "pytest"} <= set(not_installed_with_lasca())
    assert not {"numpy", "pyarrow", "numba", "llvmlite", "rich", "lasca"} & set(not_installed_with_lasca())
    done = run_blocks(["import pyarrow as pa", "pa.table({'a': [1]}).to_pandas()"], "page.md", tmp_path)
    assert "block 2" in done.stderr
    assert "ModuleNotFoundError" in done.stderr


def test_every_public_name_is_documented() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    missing = [name for name in lasca.__all__ if not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_every_model_has_a_page() -> None:
    from lasca.truth import MODEL_NAMES, model_class

    text = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs" / "models").glob("*.md"))
    for name in MODEL_NAMES:
        assert model_class(name).__name__ in text, name


@pytest.mark.parametrize("name", ["cli", "formats", "models"])
def test_made_pages_are_up_to_date(name: str) -> None:
    made = runpy.run_path(str(ROOT / "docs" / f"make_{name}.py"))["page"]()
    assert (ROOT / "docs" / f"{name}.md").read_text("utf-8") == made, "run: make docs"


def test_made_tables_are_up_to_date() -> None:
    make = runpy.run_path(str(ROOT / "docs" / "make_questions.py"))
    pages = [page for page in PAGES if make["MADE"].search(page.read_text("utf-8"))]
    assert len(pages) == 7
    for page in pages:
        assert page.read_text("utf-8") == make["filled"](page.read_text("utf-8")), f"{page.name}: run make docs"


def test_every_page_of_the_site_is_there_and_nothing_comes_from_outside() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    hooks = (ROOT / "scripts" / "site_hooks.py").read_text("utf-8")
    made = {"index.md", "api.md", *re.findall(r'"(\w+\.md)": "[A-Z]+\.md"', hooks)}
    for page in re.findall(r"[\w/-]+\.md", text):
        assert page in made or (ROOT / "docs" / page).is_file(), page
    assert "font: false" in text
    assert not re.search(r"https?://", text)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} points at {target}"


def commands_quoted(text: str) -> list[str]:
    """Return what is typed in a page: code in a line, indented lines, blocks of a shell."""
    blocks = re.findall(r"^```(?:sh|)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(
        r"^    (\S.*)", outside, re.MULTILINE
    )
    return [" ".join(code.split("#")[0].split()) for code in [*lines, *re.findall(r"`([^`]+)`", outside)]]


def test_commands_quoted_in_documents_are_there() -> None:
    verbs = {}
    for section in re.split(r"^## lasca ", (ROOT / "docs" / "cli.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        listed = " ".join(line for line in section.splitlines() if line.startswith("- `"))
        verbs[section.split("\n")[0]] = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", listed))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    seen = 0
    for page in [*PAGES, ROOT / "ARCHITECTURE.md"]:
        for typed in commands_quoted(page.read_text("utf-8")):
            seen += 1
            if found := re.match(r"lasca(?: --debug)? ([a-z]+)(?: |$)(.*)", typed):
                assert any(verb.split()[0] == found[1] for verb in verbs), f"{page.name}: {typed}"
                options = set(re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", found[2]))
                assert not options - verbs.get(found[1], options), f"{page.name}: {typed}"
            if found := re.match(r"make ([a-z-]+)", typed):
                assert found[1] in targets, f"{page.name}: {typed}"
            for script in re.findall(r"(?<![\w/])(?:experiments|benchmarks|scripts)/[\w/]+\.py", typed):
                assert (ROOT / script).is_file(), f"{page.name}: {typed}"
    assert seen > 1000


def test_help_does_not_load_numba() -> None:
    code = "import sys, lasca, lasca.cli.commands; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_map_of_the_code_names_files_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = {name for name in re.findall(r"`([\w/]+(?:\.py|/))`", text) if not name.startswith(("tests", "src"))}
    assert len(named) > 40
    missing = [name for name in sorted(named) if not any((ROOT / "src" / "lasca").rglob(name.rstrip("/")))]
    assert not missing


def test_the_map_of_the_code_names_what_is_in_the_files_it_names() -> None:
    """`file.py` (`name`, `Class.name`): each name stands in that file."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    pairs = [
        (file, name.split(".")[-1])
        for file, inside in re.findall(r"`([\w/]+/[\w]+\.py)` \(([^)]*)\)", text)
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", inside)
        if not name.endswith(".py")
    ]
    assert len(pairs) > 25
    for file, name in pairs:
        source = (ROOT / "src" / "lasca" / file).read_text("utf-8")
        assert re.search(rf"\b(def|class) {name}\b|^\s*{name}\b.*=|\b{name}\(", source, re.MULTILINE), (file, name)
