"""TOML with the line of every key, so that a mistake can be pointed at."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=(.*)$", re.S)
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.S)


@dataclass(frozen=True)
class Item:
    """A value with the line it stands at: a plain one, a dict of Items, or a list of tables as Items."""

    value: Any
    line: int

    def plain(self) -> Any:
        """The value without lines."""
        return _plain(self.value)


def parse(text: str) -> Item:
    r"""The document as an Item; a table's line is that of its header.

    Raises:
        ValueError: where the text is no TOML; the message says where.

    Example:
        >>> item = parse("a = 1\n[b]\nc = [\n  2,\n]\nd = 3")
        >>> item.value["b"].value["d"]
        Item(value=3, line=6)
    """
    return _join(tomllib.loads(text), dict(_lines(text)), (), 1)


def overlay(top: dict[str, Item], small: Mapping[str, Item]) -> dict[str, Item]:
    """A document with another laid over it: tables are merged key by key, all else is replaced."""
    merged = dict(top)
    for key, item in small.items():
        old = top.get(key)
        both = old is not None and isinstance(old.value, dict) and isinstance(item.value, dict)
        merged[key] = Item({**old.value, **item.value}, item.line) if both and old is not None else item
    return merged


def _join(value: Any, lines: dict[tuple[str | int, ...], int], path: tuple[str | int, ...], line: int) -> Item:
    line = lines.get(path, line)
    if isinstance(value, dict):
        return Item({key: _join(part, lines, (*path, key), line) for key, part in value.items()}, line)
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        return Item([_join(part, lines, (*path, place), line) for place, part in enumerate(value)], line)
    return Item(value, line)


def _lines(text: str) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """The path of every key that begins a line, with the number of the line."""
    # Strings are blanked, so that their brackets, signs and hashes mean nothing; their lines stay.
    blank = _STRING.sub(lambda match: re.sub(r"[^\n\"']", "_", match[0]), text)
    table: tuple[str | int, ...] = ()
    tables: dict[tuple[str | int, ...], int] = {}
    depth = 0
    for number, (line, original) in enumerate(zip(blank.splitlines(), text.splitlines(), strict=True), start=1):
        bare = line.partition("#")[0]
        if depth == 0 and (header := _HEADER.match(original if '"' in line or "'" in line else bare)):
            table = _resolve(_names(header[2]), tables, new=header[1] == "[[")
            yield table, number
            continue
        if depth == 0 and (key := _KEY.match(bare)):
            start = original[: len(original) - len(key[2])] if key[2] else original
            yield (*table, *_names(start.partition("=")[0])), number
        depth += sum(bare.count(sign) for sign in "[{") - sum(bare.count(sign) for sign in "]}")


def _names(dotted: str) -> tuple[str, ...]:
    parts = re.findall(r"[\w-]+|\"[^\"]*\"|'[^']*'", dotted)
    return tuple(part.strip("\"'") for part in parts)


def _resolve(names: tuple[str, ...], tables: dict[tuple[str | int, ...], int], *, new: bool) -> tuple[str | int, ...]:
    """The path of a table; of an array of tables the latest one, or the next where a new one begins."""
    path: tuple[str | int, ...] = ()
    for place, name in enumerate(names):
        path = (*path, name)
        if new and place == len(names) - 1:
            tables[path] = tables.get(path, -1) + 1
        if path in tables:
            path = (*path, tables[path])
    return path


def _plain(value: Any) -> Any:
    if isinstance(value, Item):
        return value.plain()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
