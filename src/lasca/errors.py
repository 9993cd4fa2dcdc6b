"""What goes wrong, said so that a person can act on it.

Every message answers four questions: what happened, where (file:line, sequence, annotator),
what was got, and what to do. The parts are kept as attributes for programs.
"""

from __future__ import annotations

import shlex
from pathlib import Path

__all__ = [
    "CorpusError", "DatasetError", "FormatError", "LascaError", "LascaWarning", "ModelError", "ParameterError",
    "PluginError", "StoreError", "count", "excerpt", "typed",
]  # fmt: skip


def excerpt(value: object, limit: int = 80) -> str:
    """Show a value from outside in one short, harmless line: control characters escaped, the rest cut."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(ch if ch.isprintable() else repr(ch)[1:-1] for ch in text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def count(n: int, one: str, many: str | None = None) -> str:
    """Write how many of something there are: 1 token, 2 tokens."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def typed(option: str) -> str:
    """Return an option of a reader, NAME=VALUE, as it is typed on the command line: with quotes where it needs them."""
    return "-r " + (shlex.quote(option) if "…" not in option else option)


class LascaWarning(UserWarning):
    """Something the user should know although work went on."""


class LascaError(Exception):
    """The base of all errors LASCA raises on purpose."""

    def __init__(self, what: str, *, where: str | None = None, got: object = None, hint: str | None = None) -> None:
        self.what, self.where, self.got, self.hint = what, where, got, hint
        message = what if where is None else f"{where}: {what}"
        if got is not None:
            message += f" (got: {excerpt(got)})"
        if hint is not None:
            message += f". {hint}" if not message.endswith(".") else f" {hint}"
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        """Let errors cross processes whatever their own parameters are called."""
        return _raised_elsewhere, (type(self), self.args, self.__dict__)


def _raised_elsewhere(kind: type[LascaError], args: tuple[object, ...], state: dict[str, object]) -> LascaError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class FormatError(LascaError):
    """A file that cannot be read as what it claims to be; knows the file and, where there is one, the line."""

    def __init__(
        self,
        what: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        got: object = None,
        hint: str | None = None,
    ) -> None:
        self.path, self.line = path, line
        where = None
        if path is not None:
            where = excerpt(str(path), 200) if line is None else f"{excerpt(str(path), 200)}:{line}"
        super().__init__(what, where=where, got=got, hint=hint)


class CorpusError(LascaError):
    """Arrays that do not make a corpus, or a question a corpus cannot answer."""


class ParameterError(LascaError):
    """A parameter outside what is allowed: names the parameter, the value and what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        self.name, self.value, self.allowed = name, value, allowed
        super().__init__(f"{name} must be {allowed}", got=value)


class ModelError(LascaError):
    """A model that cannot be fitted to what it was given."""


class DatasetError(LascaError):
    """A public data set that cannot be had: unknown, unreachable, or not the file it should be."""


class PluginError(LascaError):
    """Something another package adds to LASCA that cannot be loaded or does not do what it should."""


class StoreError(LascaError):
    """A saved record that cannot be read back, or cannot be written."""
