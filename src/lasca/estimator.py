"""What every estimator shares: keyword parameters stored unchanged, `get_params`, `set_params`, `repr`.

The conventions are scikit-learn's, so that its `clone` and searches work, without depending on it.
Parameters are checked in `fit`, with the helpers below, never in `__init__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, Self

import numpy as np

from lasca.errors import ParameterError

__all__ = ["Estimator", "Progress", "check_choice", "check_int", "check_number", "check_options", "generator"]

Progress = Callable[[float, str], None]
"""Called now and then with the share of the work that is done and a few words on it."""


class Estimator:
    """The base of truth models and taggers: `__init__` takes keyword arguments only and stores them unchanged."""

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
        for name, value in params.items():
            if name not in known:
                raise ParameterError(f"a parameter of {type(self).__name__}", name, "one of " + ", ".join(known))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}" for name, value in self.get_params().items() if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _same(a: object, b: object) -> bool:
    try:
        return bool(a is b or a == b)
    except ValueError:  # arrays
        return False


def check_number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, open_low: bool = False) -> float:
    """Return `value` as a float inside [low, high] (or (low, high]), or say what is allowed."""
    allowed = f"a number {'above' if open_low else 'of at least'} {low:g}" if np.isfinite(low) else "a number"
    if np.isfinite(high):
        allowed += f" and at most {high:g}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterError(name, value, allowed)
    number = float(value)
    if not low <= number <= high or (open_low and number == low):
        raise ParameterError(name, value, allowed)
    return number


def check_int(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """Return `value` as an int inside [low, high], or say what is allowed."""
    allowed = f"a whole number of at least {low}" + ("" if high is None else f" and at most {high}")
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ParameterError(name, value, allowed)
    if value < low or (high is not None and value > high):
        raise ParameterError(name, value, allowed)
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of the choices, or say what they are."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(name, value, "one of " + ", ".join(repr(c) for c in choices))
    return value


def check_options(what: str, given: Collection[str], function: Callable[..., Any], but: Collection[str] = ()) -> None:
    """Say which keywords a function takes (all `but` these) when it is given another one."""
    known = [name for name in inspect.signature(function).parameters if name not in but]
    for name in given:
        if name not in known:
            raise ParameterError(what, name, "one of " + ", ".join(known))


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """Return an explicit random generator; there is no global state to fall back on."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_int("seed", seed, low=0))
