"""The verbs; importing this package registers them with the application."""

import lasca.cli.commands.ambiguous
import lasca.cli.commands.corpora
import lasca.cli.commands.demo
import lasca.cli.commands.infer
import lasca.cli.commands.reproduce
import lasca.cli.commands.review
import lasca.cli.commands.run
import lasca.cli.commands.tagging  # noqa: F401
