"""What a release says of itself: one version everywhere, and a list of changes that says each thing once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import lasca

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import release_check  # noqa: E402


def test_changelog_citation_and_package_have_one_version() -> None:
    assert release_check.check_papers(None) == lasca.__version__


def test_a_tag_needs_its_own_version_and_a_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src" / "lasca").mkdir(parents=True)
    (tmp_path / "src" / "lasca" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.0 – unreleased\n\n## 1.1.0\n")
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    assert release_check.check_papers(None) == "1.2.0"
    with pytest.raises(SystemExit, match="unreleased: write the date there"):
        release_check.check_papers("v1.2.0")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.0 – 2026-12-01\n\n## 1.1.0\n")
    assert release_check.check_papers("v1.2.0") == "1.2.0"
    with pytest.raises(SystemExit, match=r"the tag is v1\.1\.0"):
        release_check.check_papers("v1.1.0")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.2.0\n")
    with pytest.raises(SystemExit, match="begins with Unreleased"):
        release_check.check_papers(None)


def test_the_changelog_says_each_thing_once() -> None:
    """Merges keep both sides' lines: of a line that one side made longer, the shorter one stayed, too."""
    lines = [line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("- ")]
    parts = [set(re.split(r"(?<=[.;:])\s+", line[2:])) for line in lines]
    twice = [lines[i][:60] for i, a in enumerate(parts) for j, b in enumerate(parts) if i != j and a <= b]
    assert not twice
