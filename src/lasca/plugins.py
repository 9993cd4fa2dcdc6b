"""Open registries: what LASCA brings, and what other distributions add by entry points.

A distribution adds a truth model, a format or a text model by an entry point in its pyproject.toml:

    [project.entry-points."lasca.truth_models"]
    mine = "my_package.my_model:MyModel"

The built-in names are never given away: a plug-in that takes one is left out with a warning; one that cannot be
loaded, too, when names are listed, and is an error when it is asked for by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from lasca.errors import LascaWarning, PluginError

__all__ = ["Registry", "checked_class", "load_object", "plugin_names"]

Entry = TypeVar("Entry")


def load_object(reference: str) -> Any:
    """Return what "package.module" or "package.module:name" stands for."""
    module, _, name = reference.partition(":")
    found: Any = import_module(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found


def checked_class(reference: str, base: type, attribute: str, name: str) -> str:
    """Return the reference of a plug-in that is a subclass of `base` and called what its entry point is called."""
    found = load_object(reference)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise TypeError(f"{reference} is not a subclass of {base.__module__.rsplit('.', 1)[0]}.{base.__name__}")
    if getattr(found, attribute) != name:
        raise ValueError(f"the entry point is {name!r}, but the class has {attribute} {getattr(found, attribute)!r}")
    return reference


def plugin_names(group: str) -> tuple[str, ...]:
    """Return the names that plug-ins add to a group, without loading anything: for help texts."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Names and what they stand for: the built-in ones first, then those of plug-ins, sorted by name.

    `make(name, reference)` turns an entry point (a name, and "package.module:object") into an entry, or returns None
    if the plug-in has nothing for this registry. Plug-ins are looked for when the names are listed, or when one
    is asked for.
    """

    def __init__(
        self, group: str, built_in: Mapping[str, Entry], make: Callable[[str, str], Entry | None], what: str
    ) -> None:
        self.group, self.built_in, self.make, self.what = group, dict(built_in), make, what
        self._found: dict[str, EntryPoint] | None = None

    def _plugins(self) -> dict[str, EntryPoint]:
        if self._found is None:
            found: dict[str, EntryPoint] = {}
            for point in sorted(entry_points(group=self.group), key=lambda p: (p.name, p.value)):
                taken = found.get(point.name)
                if point.name in self.built_in or (taken is not None and taken.value != point.value):
                    by = "is built in" if taken is None else f"is taken by {taken.value}"
                    self._warn(point, f"the name {by}")
                else:
                    found[point.name] = point
            self._found = found
        return self._found

    def _warn(self, point: EntryPoint, why: str) -> None:
        warnings.warn(
            LascaWarning(f"the {self.what} {point.name!r} of a plug-in ({point.value}) is left out: {why}"),
            stacklevel=4,
        )

    def _made(self, point: EntryPoint) -> Entry | None:
        try:
            return self.make(point.name, point.value)
        except Exception as error:
            raise PluginError(
                f"the {self.what} {point.name!r} of a plug-in cannot be loaded: {type(error).__name__}: {error}",
                where=point.value,
                hint="Mend or remove the package that brings it",
            ) from error

    def __getitem__(self, name: str) -> Entry:
        plugins = self._plugins()  # says which of them have a name that is built in
        if name in self.built_in:
            return self.built_in[name]
        point = plugins[name]
        entry = self._made(point)
        if entry is None:
            raise KeyError(name)
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in list(self)

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        for name, point in list(self._plugins().items()):
            try:
                if self._made(point) is not None:
                    yield name
            except PluginError as error:
                self._warn(point, str(error.__cause__))
                self._plugins().pop(name)

    def __len__(self) -> int:
        return sum(1 for _ in self)
