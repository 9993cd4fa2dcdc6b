"""The verbs; importing this package registers them with the application, in the order in which people need them."""

import lasca.cli.commands.corpora
import lasca.cli.commands.infer
import lasca.cli.commands.review
import lasca.cli.commands.run
import lasca.cli.commands.tagging  # noqa: F401
from lasca.cli.app import app

GROUPS = {
    "Start": ("demo", "run", "warm"),
    "Read": ("inspect", "convert", "shard", "datasets"),
    "Infer": ("aggregate", "compare", "ambiguity", "report"),
    "Decide": ("review", "decide", "accept", "finish", "next", "update"),
    "Learn": ("train", "tag", "evaluate"),
    "Study": ("simulate", "reproduce"),
}
"""How `lasca --help` shows the verbs; one that is not here stands last, under "More"."""

PLACES = {name: (place, group) for place, (group, name) in enumerate((g, n) for g, ns in GROUPS.items() for n in ns)}


def _place(name: str) -> tuple[int, str]:
    return PLACES.get(name, (len(PLACES), "More"))


for command in app.registered_commands:
    command.name = command.name or command.callback.__name__  # type: ignore[union-attr]
    command.rich_help_panel = _place(command.name)[1]
for group in app.registered_groups:
    group.rich_help_panel = _place(str(group.name))[1]
app.registered_commands.sort(key=lambda command: _place(str(command.name)))
