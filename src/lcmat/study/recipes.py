"""The named studies that come with lcmat: one TOML file each, with the paper's values beside it."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lcmat
from lcmat.study.design import Source, locate


@dataclass(frozen=True)
class Recipe:
    """One named study.

    Attributes:
        name: of its file.
        file: the TOML file.
        title: in one line.
        commands: the words of the commands that do it, for studies that are no grid; empty for the others.
        quick_commands: likewise, of the small form.
        sources: what the data sets in braces in these words stand for.
    """

    name: str
    file: Path
    title: str
    commands: tuple[tuple[str, ...], ...] = ()
    quick_commands: tuple[tuple[str, ...], ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def fill_in(self, out: Path, *, quick: bool, given: Mapping[str, str]) -> list[list[str]]:
        """The commands with a folder and data sets in the place of their names.

        Raises:
            ValueError: for a data set that the study does not have.
        """
        if unknown := [name for name in given if name not in self.sources]:
            raise ValueError(f"{self.name} has no data set {', '.join(unknown)}; it has {', '.join(self.sources)}")
        places = {"out": str(out), **self.sources, **given}
        chosen = self.quick_commands if quick else self.commands
        return [[word.format_map(places) for word in words] for words in chosen]


def recipes() -> dict[str, Recipe]:
    """All named studies, by name."""
    return {path.stem: _read(path) for path in sorted(_folder().glob("*.toml"))}


def find_recipe(name: str) -> Recipe:
    """The study of a name.

    Raises:
        ValueError: for an unknown name; near names are suggested.
    """
    known = recipes()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown study {name!r}; {hint}known: {', '.join(known)}")
    return known[name]


def _folder() -> Path:
    """Beside the modules where lcmat is installed, at the root of the source tree where it is not."""
    package = Path(lcmat.__file__).parent
    places = (package / "recipes", package.parents[1] / "recipes")
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise ValueError(
            f"the recipes are missing; expected them in {' or '.join(map(str, places))}; install lcmat anew"
        )
    return found


def _read(path: Path) -> Recipe:
    content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    commands, quick = (tuple(map(tuple, part.get("commands", ()))) for part in (content, content.get("quick", {})))
    sources = {}
    if commands:
        sources = {
            name: locate(Source(name, entry["source"], entry.get("local", "")))
            for name, entry in content.get("data", {}).items()
        }
    return Recipe(path.stem, path, str(content["title"]), commands, quick, sources)
