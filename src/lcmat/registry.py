"""Names for functions: one registry for each kind (selectors, networks, sources), filled by a decorator.

An entry's options are the keyword-only parameters of its function; nothing is swallowed, and an unknown name or
option is answered with the valid ones.
"""

import difflib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Facts = TypeVar("Facts")


@dataclass(frozen=True)
class Option:
    """One option of a registered function: its name, default and accepted types."""

    name: str
    default: Any
    kinds: tuple[type, ...]

    def parse(self, text: str) -> Any:
        """The value that a command line's text stands for.

        Raises:
            ValueError: when the text is none of the accepted types.
        """
        if type(None) in self.kinds and text.lower() in {"none", "null"}:
            return None
        if bool in self.kinds and text.lower() in {"true", "yes", "on", "false", "no", "off"}:
            return text.lower() in {"true", "yes", "on"}
        for kind in (int, float, str):
            if kind in self.kinds:
                try:
                    return kind(text)
                except ValueError:
                    continue
        raise ValueError(f"option {self.name} takes {self.describe_kinds()}, got {text!r}")

    def check(self, value: Any) -> Any:
        """The value itself, an int widened to a float where that is what the option takes.

        Raises:
            TypeError: when the value is of another type.
        """
        if float in self.kinds and isinstance(value, int) and not isinstance(value, bool):
            return value if int in self.kinds else float(value)
        wrong_bool = isinstance(value, bool) and bool not in self.kinds
        if wrong_bool or (self.kinds and not isinstance(value, self.kinds)):
            raise TypeError(f"option {self.name} takes {self.describe_kinds()}, got {value!r}")
        return value

    def describe_kinds(self) -> str:
        """The accepted types in words, such as 'float or None'."""
        return " or ".join("None" if kind is type(None) else kind.__name__ for kind in self.kinds) or "a value"


@dataclass(frozen=True)
class Entry(Generic[Function, Facts]):
    """One registered function with what is known of it."""

    name: str
    function: Function
    summary: str
    facts: Facts
    reserved: frozenset[str] = frozenset()

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The keyword-only parameters that a user may set, by name."""
        hints = typing.get_type_hints(self.function)
        return {
            name: Option(name, parameter.default, _kinds(hints.get(name)))
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and name not in self.reserved
        }

    def accepts(self, parameter: str) -> bool:
        """Whether the function has a parameter of this name, reserved ones included."""
        return parameter in inspect.signature(self.function).parameters

    def check_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options as the function will get them.

        Raises:
            TypeError: for an unknown option (the valid ones are listed) or a value of a wrong type.
        """
        for name in options:
            if name not in self.options:
                raise TypeError(_unknown(f"option of {self.name}", name, self.options))
        return {name: self.options[name].check(value) for name, value in options.items()}

    def parse_options(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """The options that texts stand for, as a command line or a file has them.

        Raises:
            TypeError: for an unknown option; the valid ones are listed.
            ValueError: for a text that is no value of its option.
        """
        # A text is no value yet, so that of an unknown option only the name is checked, before the others are parsed.
        known = {name: self.options[name].parse(text) for name, text in texts.items() if name in self.options}
        return self.check_options({**texts, **known})

    def describe(self) -> str:
        """One line: what it does, and its options with their defaults."""
        options = ", ".join(f"{option.name}={option.default!r}" for option in self.options.values())
        return f"{self.summary} ({options})" if options else self.summary


class Registry(Generic[Function, Facts]):
    """Name -> entry, in the order of registration.

    Example:
        >>> shapes = Registry("shape")
        >>> @shapes.add("circle", "round", facts=None)
        ... def circle(*, radius: float = 1.0) -> float: ...
        >>> shapes.find("circel")
        Traceback (most recent call last):
        ...
        ValueError: unknown shape 'circel'; did you mean 'circle'? valid: circle
    """

    def __init__(self, kind: str, *, reserved: Iterable[str] = ()) -> None:
        self.kind = kind
        self.reserved = frozenset(reserved)
        self._entries: dict[str, Entry[Function, Facts]] = {}

    def add(self, name: str, summary: str, *, facts: Facts) -> Callable[[Function], Function]:
        """A decorator that registers a function under a name and leaves it as it is."""

        def register(function: Function) -> Function:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = Entry(name, function, summary, facts, self.reserved)
            return function

        return register

    def find(self, name: str) -> Entry[Function, Facts]:
        """The entry of a name.

        Raises:
            ValueError: for an unknown name; near names are suggested and the valid ones listed.
        """
        if name not in self._entries:
            raise ValueError(_unknown(self.kind, name, self._entries))
        return self._entries[name]

    def describe(self) -> dict[str, str]:
        """Name -> one-line description with options."""
        return {name: entry.describe() for name, entry in self._entries.items()}

    def __iter__(self) -> Iterator[Entry[Function, Facts]]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._entries


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """The name and the options of a text.

    Raises:
        ValueError: when an option is not written as name=value.

    Example:
        >>> split_options("convnet:width=32, depth=2")
        ('convnet', {'width': '32', 'depth': '2'})
    """
    name, _, rest = text.partition(":")
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        option, separator, value = part.partition("=")
        if not separator:
            raise ValueError(f"expected options as name=value after {name + ':'!r}, got {part!r} in {text!r}")
        given[option.strip()] = value.strip()
    return name.strip(), given


def _unknown(kind: str, name: str, valid: Iterable[str]) -> str:
    names = list(valid)
    near = difflib.get_close_matches(str(name).lower(), names, n=2, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
    return f"unknown {kind} {name!r}{hint} valid: {', '.join(names) if names else 'none'}"


def _kinds(hint: Any) -> tuple[type, ...]:
    """The plain types of an annotation; a parametrised one counts as its origin."""
    if hint is None or hint is Any:
        return ()
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        return tuple(kind for part in typing.get_args(hint) for kind in _kinds_or_none(part))
    if typing.get_origin(hint) is typing.Literal:
        return tuple({type(value): None for value in typing.get_args(hint)})
    origin = typing.get_origin(hint) or hint
    return (origin,) if isinstance(origin, type) else ()


def _kinds_or_none(hint: Any) -> tuple[type, ...]:
    return (type(None),) if hint is type(None) else _kinds(hint)
