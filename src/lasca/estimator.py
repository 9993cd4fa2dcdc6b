"""What every estimator shares: declared parameters, stored unchanged; `get_params`, `set_params`, `repr`.

The conventions are scikit-learn's, so that its `clone` and searches work, without depending on it. A parameter is
declared once, in the body of its class:

    class Mine(TruthModel):
        power: float = number("how much trust counts; 0 is plain majority vote", default=2.0, low=0)

From that follow the signature, the check (in `fit`, never in `__init__`), the text of `help(Mine)`, and docs/models.md.
A class may write an `__init__` of its own instead; then it checks what it is given by itself.
"""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from lasca.errors import ParameterError

__all__ = [
    "Estimator", "Parameter", "Progress", "check_choice", "check_int", "check_number", "check_options", "choice",
    "flag", "generator", "number", "other", "seeds", "threads", "tolerance", "whole",
]  # fmt: skip

Progress = Callable[[float, str], None]
"""Called now and then with the share of the work that is done and a few words on it."""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter."""

    default: Any
    doc: str
    allowed: str
    """What it may be, in words."""
    check: Callable[[str, Any], Any]
    """(name, value) -> the value as it is used; raises `ParameterError`."""


class Estimator:
    """The base of truth models and taggers: `__init__` takes keyword arguments only and stores them unchanged."""

    declared: ClassVar[Mapping[str, Parameter]] = {}
    """The parameters by name, where a class declares them."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Parameters that had another name in 0.1.0, old name to new: the old ones are still taken."""
    in_order: ClassVar[tuple[str, ...]] = ()
    """Declared parameters that may also be given without their names, in this order."""
    usual: ClassVar[Mapping[str, Any]] = {}
    """Other defaults of inherited parameters."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        if own:
            others = {name: replace(cls.declared[name], default=value) for name, value in cls.usual.items()}
            cls.declared = {**cls.declared, **others, **own}
            cls.__init__ = _initialiser(cls.declared, cls.in_order)  # type: ignore[method-assign]
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{_listed(cls.declared)}"

    def checked(self) -> Self:
        """Return a copy whose declared parameters are checked, and of the type they are used as."""
        made = copy.copy(self) if self.declared else self
        for name, parameter in self.declared.items():
            setattr(made, name, parameter.check(name, getattr(self, name)))
        return made

    @classmethod
    def _parameter_names(cls) -> list[str]:
        signature = inspect.signature(cls.__init__)
        named = (p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
        return [p.name for p in named if p.name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as they were given (`deep` is there for scikit-learn; there is nothing below)."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        known = self._parameter_names()
        for given, value in params.items():
            name = self.renamed.get(given, given)
            if name not in known:
                raise ParameterError(f"a parameter of {type(self).__name__}", name, "one of " + ", ".join(known))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _initialiser(declared: Mapping[str, Parameter], in_order: tuple[str, ...]) -> Any:
    """Return the `__init__` of a class with these parameters."""

    def initialise(self: Any, *first: Any, **given: Any) -> None:
        if len(first) > len(in_order):
            raise TypeError(f"{type(self).__name__} takes its parameters by name: {', '.join(declared)}")
        given = dict(zip(in_order, first)) | {self.renamed.get(name, name): value for name, value in given.items()}
        for name in given:
            if name not in declared:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}; there is: {', '.join(declared)}")
        for name, parameter in declared.items():
            setattr(self, name, given.get(name, parameter.default))

    word = inspect.Parameter
    names = [*in_order, *(name for name in declared if name not in in_order)]
    kinds = [word.POSITIONAL_OR_KEYWORD if name in in_order else word.KEYWORD_ONLY for name in names]
    own = [word(name, kind, default=declared[name].default) for name, kind in zip(names, kinds)]
    signature = inspect.Signature([word("self", word.POSITIONAL_OR_KEYWORD), *own])
    initialise.__name__, initialise.__qualname__ = "__init__", "__init__"
    initialise.__signature__ = signature  # type: ignore[attr-defined]
    return initialise


def _listed(declared: Mapping[str, Parameter]) -> str:
    """Return the parameters as lines of a docstring."""
    lines = ["Parameters:"]
    for name, parameter in declared.items():
        text = f"{name}: {parameter.doc} ({parameter.allowed}; default {parameter.default!r})"
        lines += textwrap.wrap(text, 116, initial_indent="    ", subsequent_indent="        ")
    return "\n".join(lines)


def _same(a: object, b: object) -> bool:
    try:
        return bool(a is b or a == b)
    except ValueError:  # arrays
        return False


# --- declarations: default, what it is, what is allowed ---------------------------------------------------------


def number(
    doc: str,
    *,
    default: float | None,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    none: str = "",
) -> Any:
    """Declare a number; `none` says what None stands for, where it is allowed."""

    def check(name: str, value: Any) -> float | None:
        return None if none and value is None else check_number(name, value, low=low, high=high, open_low=open_low)

    return Parameter(default, doc, _or_none(_number_range(low, high, open_low), none), check)


def whole(doc: str, *, default: int | None, low: int, high: int | None = None, none: str = "") -> Any:
    """Declare a whole number; `none` says what None stands for, where it is allowed."""

    def check(name: str, value: Any) -> int | None:
        return None if none and value is None else check_int(name, value, low=low, high=high)

    return Parameter(default, doc, _or_none(_int_range(low, high), none), check)


def flag(doc: str, *, default: bool) -> Any:
    """Declare a switch."""

    def check(name: str, value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(name, value, "True or False")
        return bool(value)

    return Parameter(default, doc, "True or False", check)


def choice(doc: str, choices: Collection[str], *, default: str) -> Any:
    """Declare one of some words."""
    return Parameter(default, doc, _one_of(choices), lambda name, value: check_choice(name, value, choices))


def other(doc: str, allowed: str, *, default: Any, check: Callable[[str, Any], Any] = lambda name, value: value) -> Any:
    """Declare what has a check of its own, or needs the corpus to be checked."""
    return Parameter(default, doc, allowed, check)


def seeds(*, default: int) -> Any:
    """Declare `seed`."""

    def check(name: str, value: Any) -> Any:
        return value if isinstance(value, np.random.Generator) else check_int(name, value, low=0)

    return Parameter(default, "where random numbers begin", "a whole number of at least 0, or a NumPy generator", check)


def tolerance(*, default: float) -> Any:
    """Declare `tol`."""
    doc = "a run stops when the objective rises by less than this per annotation; 0: never"
    return number(doc, default=default, low=0)


def threads(*, default: int | None) -> Any:
    """Declare `n_threads`."""
    return whole("threads at work; they change no byte", default=default, low=1, none="all cores")


def _or_none(allowed: str, none: str) -> str:
    return f"{allowed}, or None: {none}" if none else allowed


def _number_range(low: float, high: float, open_low: bool) -> str:
    allowed = f"a number {'above' if open_low else 'of at least'} {low:g}" if np.isfinite(low) else "a number"
    return allowed + (f" and at most {high:g}" if np.isfinite(high) else "")


def _int_range(low: int, high: int | None) -> str:
    return f"a whole number of at least {low}" + ("" if high is None else f" and at most {high}")


def _one_of(choices: Collection[str]) -> str:
    return "one of " + ", ".join(repr(c) for c in choices)


# --- checks ------------------------------------------------------------------------------------------------------


def check_number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, open_low: bool = False) -> float:
    """Return `value` as a float inside [low, high] (or (low, high]), or say what is allowed."""
    allowed = _number_range(low, high, open_low)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterError(name, value, allowed)
    try:
        number = float(value)
    except OverflowError:  # a whole number larger than any float
        raise ParameterError(name, value, allowed) from None
    if not low <= number <= high or (open_low and number == low):
        raise ParameterError(name, value, allowed)
    return number


def check_int(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """Return `value` as an int inside [low, high], or say what is allowed."""
    allowed = _int_range(low, high)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ParameterError(name, value, allowed)
    if value < low or (high is not None and value > high):
        raise ParameterError(name, value, allowed)
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of the choices, or say what they are."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(name, value, _one_of(choices))
    return value


def check_options(what: str, given: Collection[str], function: Callable[..., Any], but: Collection[str] = ()) -> None:
    """Say which keywords a function takes (all `but` these) when it is given another one."""
    known = [name for name in inspect.signature(function).parameters if name not in but]
    for name in given:
        if name not in known:
            raise ParameterError(what, name, "one of " + ", ".join(known) if known else "left out: it has none")


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return an explicit random generator; there is no global state to fall back on."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_int("seed", seed, low=0))
