"""The command line: parse, call, print. No mathematics lives here."""

from lasca.cli.app import main

__all__ = ["main"]
