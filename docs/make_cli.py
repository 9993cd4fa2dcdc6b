"""Write docs/cli.md from the commands' own help pages (make docs); a test says when it is out of date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from lasca.cli.app import app
from lasca.cli.commands import GROUPS

HEAD = """# The command line

{groups}

- Exit codes: 0 done, 1 failure, 2 bad input, 130 interrupted.
- Errors are one line on stderr; `lasca --debug VERB …` shows the traceback.
- Progress goes to stderr, results to stdout.

This page is made from the commands' own help by `make docs`.
"""


def page() -> str:
    """Return the text of docs/cli.md."""
    command: Any = typer.main.get_command(app)
    rows = ["| to | commands |", "|---|---|"]
    for group, names in GROUPS.items():
        shown = [f"`lasca {name}`" for name in names if not command.commands[name].hidden]
        rows.append(f"| {group.lower()} | {', '.join(shown)} |")
    parts = [HEAD.format(groups="\n".join(rows)), *_sections(command, "lasca", None)]
    return "\n".join(parts).rstrip() + "\n"


def _sections(command: Any, path: str, parent: Any) -> list[str]:
    context = typer.Context(command, info_name=path.split()[-1], parent=parent)
    children = getattr(command, "commands", None)
    if children is not None:
        sections = [] if parent is None else [f"## {path}\n\n{command.help}\n"]
        for name, child in children.items():
            if child.hidden:
                continue
            sections += _sections(child, f"{path} {name}", context)
        return sections
    names = [_name(p) for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([path, "[OPTIONS]", *names])
    lines = [f"- `{_name(p)}` – {p.help or ''}{_default(p)}" for p in command.params if p.name != "help"]
    return [f"## {path}\n", f"{command.help.strip()}\n", f"    {usage}\n", *lines, ""]


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return ", ".join(parameter.opts)
    name = str(parameter.metavar or parameter.name.upper()) + ("..." if parameter.nargs != 1 else "")
    return name if parameter.required else f"[{name}]"


def _default(parameter: Any) -> str:
    value = parameter.default
    return "" if value is None or value is False or callable(value) or parameter.required else f" Default: {value}."


if __name__ == "__main__":
    target = Path(__file__).with_name("cli.md")
    target.write_text(page(), encoding="utf-8")
