"""The commands that make a result again, written from what was stored with it."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcmat import files
from lcmat.study.recipes import recipes
from lcmat.study.store import Run

if TYPE_CHECKING:
    from lcmat.study.comparison import Protocol


def select_command(run: Run) -> str:
    """The `lcmat select` of a run, with all its settings."""
    settings = run.settings
    words = ["select", settings.source, "--method", settings.method, *_options(settings.options)]
    words += [f"--{settings.budget}", _listed(settings.amounts), "--balance", settings.balance]
    if settings.net:
        words += ["--net", settings.net]
    words += ["--epochs", str(settings.epochs)]
    if settings.points:
        words += ["--points", _listed(settings.points)]
    return _command([*words, "--seed", str(settings.seed), *_reading(settings.reading), "--out", _path(run.path)])


def evaluate_command(folders: Iterable[Path], protocol: "Protocol", out: Path) -> str:
    """The `lcmat evaluate` of runs."""
    words = ["evaluate", *map(_path, folders), "--seeds", str(protocol.seeds)]
    words += ["--epochs", str(protocol.epochs)] if protocol.steps is None else ["--steps", str(protocol.steps)]
    if protocol.augment is False:
        words.append("--no-augment")
    if protocol.nets:
        words += ["--nets", _listed(protocol.nets)]
    if protocol.same_subset:
        words.append("--same-subset")
    if protocol.full:
        words.append("--full")
    if protocol.weighted:
        words += ["--weighted", _listed(protocol.weighted)]
    if protocol.oracle:
        words.append("--oracle")
    if protocol.reach is not None:
        words += ["--reach", f"{protocol.reach:g}"]
    return _command([*words, "--out", _path(out)])


def condense_command(folder: Path, asked: Mapping[str, Any], steps: int) -> str:
    """The `lcmat condense` of a run, from the request in its `condense.json`."""
    words = ["condense", asked["source"], "--method", asked["method"], *_options(asked["options"])]
    words += ["--per-class", str(asked["per_class"]), "--net", asked["net"], "--factor", str(asked["factor"])]
    if asked["start"]:
        words += ["--start", asked["start"]]
    words += ["--labels", asked["labels"]]
    if asked["classes"]:
        words += ["--classes", _listed(asked["classes"])]
    words += ["--steps", str(steps), "--seed", str(asked["seed"]), *_reading(asked["reading"])]
    return _command([*words, "--out", _path(folder)])


def join_command(shards: Iterable[Path], out: Path) -> str:
    """The `lcmat join` of shards."""
    return _command(["join", *map(_path, shards), "--out", _path(out)])


def study_command(folder: Path) -> str:
    """The `lcmat reproduce` or `lcmat study` of a study folder, from its own files."""
    meta = files.read_json(folder / "study.json")
    known = recipes().get(meta["study"]["name"])
    named = known is not None and known.file.read_bytes() == (folder / "study.toml").read_bytes()
    words = ["reproduce", known.name] if known and named else ["study", _path(folder / "study.toml")]
    words += ["--quick"] if meta.get("quick") else []
    for name, source in meta.get("sources", {}).items():
        words += ["--data", f"{name}={source}"]
    return _command([*words, "--out", _path(folder)])


def _command(words: Sequence[str]) -> str:
    return shlex.join(["lcmat", *words])


def _options(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        yield from ("--set", f"{name}={value}")


def _reading(reading: Mapping[str, Any]) -> Iterator[str]:
    for name, value in reading.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{option}" if value else f"--no-{option}"
        else:
            yield from (f"--{option}", str(value))


def _listed(values: Iterable[object]) -> str:
    return ",".join(str(int(value)) if isinstance(value, float) and value >= 1 else str(value) for value in values)


def _path(path: Path) -> str:
    return os.fspath(path)
