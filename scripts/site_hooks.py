"""What the docs site has beside docs/: pages from the root of the repository, the API, and a page per command and format.

`cli.md` and `formats.md` are made from the code (`make docs`) as one page each, which is how they are read on GitHub; the site
cuts them at their headings. Nothing here is written to disk.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
CUT = {"cli.md": "commands", "formats.md": "formats"}
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    made = {page: _moved(source) for page, source in PAGES.items()}
    made["api.md"] = _api()
    for page, folder in CUT.items():
        made |= _cut((ROOT / "docs" / page).read_text("utf-8"), page, folder)
    for name, text in made.items():
        found = files.get_file_from_path(name)
        if found is not None:
            files.remove(found)
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **more: Any) -> str:
    """Let pages of docs/ point at pages of the root as the site has them."""
    for name, source in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)+{re.escape(source)}", f"]({name}", markdown)
    return re.sub(r"\]\((?:\.\./)?models/?\)", "](models.md)", markdown)


def _moved(source: str) -> str:
    """Return a page of the root with its links as they are seen from docs/."""
    names = {path: name for name, path in PAGES.items()}

    def moved(found: re.Match[str]) -> str:
        target = found[1].removeprefix("docs/")
        target = "models.md" if target.rstrip("/") == "models" else names.get(target, target)
        return f"]({target}{found[2] or ''})"

    text = (ROOT / source).read_text("utf-8")
    return LINK.sub(moved, text).replace('src="docs/', 'src="')


def _api() -> str:
    """Return the reference: every public name where it lives, for mkdocstrings."""
    import inspect

    import lasca

    parts = ["# API", "Everything public is in `lasca`; [From Python](python.md) shows it at work."]
    for name in lasca.__all__:
        found = getattr(lasca, name)
        if inspect.ismodule(found):
            own = sorted(set(found.__all__) - set(lasca.__all__))
            parts.append(f"::: {found.__name__}\n    options:\n      members: {own}")
        elif hasattr(found, "__qualname__"):
            parts.append(f"::: {found.__module__}.{found.__qualname__}\n    options:\n      heading: lasca.{name}")
    return "\n\n".join(parts) + "\n"


def _cut(text: str, page: str, folder: str) -> dict[str, str]:
    """Return a page per heading of level 2, and the page itself with its beginning and links to them."""
    outside = re.sub(r"^```.*?^```$", lambda block: re.sub("(?m)^#", "\0", block[0]), text, flags=re.S | re.M)
    head, *sections = (part.replace("\0", "#") for part in re.split(r"(?m)^## ", outside))
    made, links = {}, []
    for section in sections:
        title, body = section.split("\n", 1)
        name = f"{folder}/{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}.md"
        first = re.sub(r"\s+", " ", body.strip().split("\n\n")[0])
        made[name] = f"# {title}\n\n[All {folder}](../{page})\n{LINK.sub(lambda found: '](../' + found[0][2:], body)}"
        links.append(
            f"- [{title}]({name}) – {first}"
            if not first.startswith(("|", "-", "`", "    "))
            else f"- [{title}]({name})"
        )
    return made | {page: head + "\n".join(links) + "\n"}
