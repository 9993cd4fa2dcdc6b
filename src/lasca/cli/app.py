"""The application: one verb per step, and one place where errors become a line and an exit code."""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Annotated, NoReturn

import typer

from lasca import __version__
from lasca.errors import CorpusError, DatasetError, FormatError, LascaError, LascaWarning, ParameterError, excerpt

__all__ = ["app", "main"]

BAD_INPUT = (FormatError, ParameterError, CorpusError, DatasetError)
_asked = {"debug": False}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learn from crowd sequence annotations: true labels, who is reliable, what is ambiguous, and a tagger.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lasca {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Options before the verb."""
    _asked["debug"] = debug


def _print_anything() -> None:
    """Show what the encoding of a stream lacks as ? (or as an escape, in errors), and nothing where it is closed."""
    sys.stdout, sys.stderr = (s or open(os.devnull, "w") for s in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream, instead in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors=instead)


def _fail(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"lasca: {excerpt(message, 2000)}\n")
    raise SystemExit(code)


def _say(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    if issubclass(category, LascaWarning):
        sys.stderr.write(f"lasca: note: {excerpt(str(message), 2000)}\n")


def main() -> None:
    """Run a command; errors are one line on stderr with exit code 2 (bad input) or 1 (failure)."""
    import lasca.cli.commands  # noqa: F401  the verbs register themselves

    _print_anything()
    warnings.showwarning = _say
    try:
        app()
    except BrokenPipeError:  # the reader of a pipe went away: say nothing, and let nothing be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        if _asked["debug"]:
            raise
        if isinstance(error, LascaError):
            outside = isinstance(error, DatasetError) and error.__cause__ is not None  # the network, the disk
            _fail(str(error), 2 if isinstance(error, BAD_INPUT) and not outside else 1)
        if isinstance(error, OSError):
            _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
        _fail(f"unexpected {type(error).__name__}: {error}. Run again as `lasca --debug …` and report it", 1)
