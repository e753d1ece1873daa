"""From the words of a command line to values, with errors that say what was expected."""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcmat.registry import Entry, Registry


_TYPED: ContextVar[tuple[str, ...]] = ContextVar("_TYPED", default=())


@contextmanager
def typed(arguments: Sequence[str]) -> Iterator[None]:
    """These words are the command inside the block."""
    token = _TYPED.set(tuple(arguments))
    try:
        yield
    finally:
        _TYPED.reset(token)


def as_typed(*without: str) -> str:
    """The command that is being carried out, to be given again.

    Args:
        without: options that are left out, with their values.

    Example:
        >>> with typed(["show", "my runs/a"]):
        ...     as_typed()
        "lcmat show 'my runs/a'"
        >>> with typed(["dynamic", "digits", "--minutes", "5", "--seeds", "2"]):
        ...     as_typed("--minutes")
        'lcmat dynamic digits --seeds 2'
    """
    words = _TYPED.get()
    kept = [
        word
        for place, word in enumerate(words)
        if word.partition("=")[0] not in without and (place == 0 or words[place - 1] not in without)
    ]
    return shlex.join(["lcmat", *kept])


class WrongUseError(Exception):
    """Something was asked for wrongly: exit status 2."""


@contextmanager
def as_wrong_use() -> Iterator[None]:
    """What is refused inside the block was asked for wrongly, and nothing failed."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise WrongUseError(str(error)) from error


def reading(**given: Any) -> dict[str, Any]:
    """The arguments of `lcmat.load` that were given."""
    found = {name: value for name, value in given.items() if value is not None}
    share = found.get("test_fraction", 0.5)
    if not 0 < share < 1:
        raise WrongUseError(f"--test-fraction takes a share between 0 and 1, both excluded, got {share}")
    return found


def check_seeds(seeds: int) -> None:
    """Refuse less than one seed."""
    if seeds < 1:
        raise WrongUseError(f"expected at least 1 seed, got {seeds}")


def as_options(text: str) -> str:
    """A message of the library with its arguments of `lcmat.load` spelled as options of the command line.

    Example:
        >>> as_options("name it with label=; give resize=SIZE")
        'name it with --label; give --resize SIZE'
        >>> as_options("there is no column label='kind' in a/label=3/b.csv")
        "there is no column --label 'kind' in a/label=3/b.csv"
    """
    return re.sub(r"(?<![\w/.'-])(label|image|resize|flip)=(?=([\w']?))", _as_option, text)


def _as_option(match: re.Match[str]) -> str:
    return f"--{match[1]}" + (" " if match[2] else "")


def numbers(name: str, text: str, kind: type[int] | type[float]) -> list[Any]:
    """The numbers of a list such as '0.01,0.05'."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise WrongUseError(f"{name} takes {what}, or several with commas between, got {text!r}") from None


def names(text: str) -> tuple[str, ...]:
    """The networks of a list; a part such as 'depth=2' belongs to the one before it.

    Example:
        >>> names("resnet18,convnet:width=32,depth=2,mlp")
        ('resnet18', 'convnet:width=32,depth=2', 'mlp')
    """
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if found and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return tuple(found)


def budget(fraction: str | None, count: str | None, coverage: str | None) -> tuple[str, tuple[float, ...]]:
    """The one budget that was given, 1 % where none was."""
    kinds: dict[str, tuple[str | None, type[int] | type[float]]] = {
        "fraction": (fraction, float),
        "count": (count, int),
        "coverage": (coverage, float),
    }
    given = {name: numbers(f"--{name}", text, kind) for name, (text, kind) in kinds.items() if text is not None}
    if len(given) > 1:
        raise WrongUseError(f"give one budget, got {' and '.join(f'--{name}' for name in given)}")
    name, amounts = next(iter(given.items()), ("fraction", [0.01]))
    return name, tuple(amounts)


def assignments(option: str, texts: list[str]) -> dict[str, str]:
    """The values of a repeatable option such as --data NAME=SOURCE, by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not value:
            raise WrongUseError(f"{option} takes NAME=VALUE, got {text!r}")
        found[name] = value
    return found


def duration(seconds: float) -> str:
    """A length of time as people say it.

    Example:
        >>> duration(0.25), duration(90), duration(600), duration(9000)
        ('0.25 s', '90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def method_options(method: str, assignments: list[str]) -> dict[str, Any]:
    """The options of a method from texts such as 'rho=0.1'.

    Raises:
        ValueError: for an unknown method, or a text that is no assignment or no value of the option.
        TypeError: for an unknown option; the valid ones are listed.
    """
    from lcmat.selection import SELECTORS

    return entry_options(SELECTORS.find(method), assignments)


def entry_options(entry: "Entry[Any, Any]", assignments: list[str]) -> dict[str, Any]:
    """The options of a registered function from texts such as 'rho=0.1'.

    Raises:
        ValueError: for a text that is no assignment or no value of the option.
        TypeError: for an unknown option; the valid ones are listed.
    """
    texts: dict[str, str] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator:
            raise ValueError(f"--set takes NAME=VALUE, such as --set rho=0.1, got {assignment!r}")
        if name in texts:
            raise ValueError(f"--set {name} is given twice")
        texts[name] = text
    return entry.parse_options(texts)


def named_options(
    what: str, assignments: list[str], registries: "Sequence[Registry[Any, Any]]"
) -> dict[str, dict[str, Any]]:
    """Options by the name of a registered function, from texts such as 'lcmat-s.rho=0.1'.

    Args:
        what: the functions are to the command, such as 'FILL'.
        assignments: the texts.
        registries: that may hold a name, the first of them first; the last one tells what it has.

    Raises:
        ValueError: for a text that is no assignment, an unknown name, or no value of the option.
        TypeError: for an unknown option; the valid ones are listed.
    """
    found: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        place, separator, text = assignment.partition("=")
        name, dot, option = place.rpartition(".")
        if not (separator and dot):
            raise ValueError(f"--set takes {what}.OPTION=VALUE, such as --set lcmat-s.rho=0.1, got {assignment!r}")
        entry = next((registry for registry in registries if name in registry), registries[-1]).find(name)
        # The text of an unknown option goes on unparsed, to be refused with the list of the valid ones.
        value = entry.options[option].parse(text) if option in entry.options else text
        found.setdefault(name, {}).update(entry.check_options({option: value}))
    return found


def indices(option: str, text: str) -> tuple[int, ...]:
    """The whole numbers of a list such as '0,3,5-7'; none for an empty text.

    Example:
        >>> indices("--classes", "0,3,5-7")
        (0, 3, 5, 6, 7)
    """
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        try:
            found += range(int(first), int(last) + 1) if dash else [int(first)]
        except ValueError:
            raise WrongUseError(f"{option} takes numbers and ranges such as 0,3,5-7, got {text!r}") from None
    return tuple(found)
