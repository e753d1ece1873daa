"""Checks of the values in a study's file: each gives the value, or says in an error what was expected."""

import math
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from lcmat.networks.build import parse as parse_net

T = TypeVar("T")


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected a text, got {value!r}")
    return value


def truth(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def count(value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TypeError(f"expected a whole number of at least 1, got {value!r}")
    return value


def number(value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"expected a number, got {value!r}")
    return float(value)


def positive(value: Any) -> float:
    """A number above 0."""
    if number(value) <= 0:
        raise ValueError(f"expected a number above 0, got {value!r}")
    return float(value)


def not_negative(value: Any) -> float:
    """A number of at least 0."""
    if number(value) < 0:
        raise ValueError(f"expected a number of at least 0, got {value!r}")
    return float(value)


def share(value: Any) -> float:
    """A share above 0 and at most 1."""
    if not 0 < number(value) <= 1:
        raise ValueError(f"expected a share above 0 and at most 1, got {value!r}")
    return float(value)


def seeds(value: Any) -> tuple[int, ...]:
    """The seeds: so many from 0 on, or those of a list."""
    if isinstance(value, list):
        if not value or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in value):
            raise TypeError(f"expected a number of seeds, or a list of whole numbers, got {value!r}")
        return tuple(dict.fromkeys(value))
    return tuple(range(count(value)))


def net(value: Any) -> str:
    """A network with options, as its text."""
    parse_net(text(value))
    return str(value)


def one_of(valid: Collection[str]) -> Callable[[Any], str]:
    """A check for one of these words."""

    def check(value: Any) -> str:
        if value not in valid:
            raise ValueError(f"expected one of {', '.join(valid)}, got {value!r}")
        return str(value)

    return check


def several(check: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """A value or a list of them, none twice; every wrong one is named."""

    def check_all(values: Any) -> tuple[T, ...]:
        found, wrong = [], []
        for value in values if isinstance(values, list) else [values]:
            try:
                found.append(check(value))
            except (ValueError, TypeError) as error:
                wrong.append(str(error))
        if wrong:
            raise ValueError("; ".join(wrong))
        return tuple(item for place, item in enumerate(found) if item not in found[:place])

    return check_all
