"""Which files of a folder are training data and which are test data, by their names."""

import re
from collections.abc import Sequence
from pathlib import Path

TRAIN_NAMES = ("train", "training")
# In order of preference: held-out data stands in for a test part that is not there.
TEST_NAMES = ("test", "testing", "val", "valid", "validation", "dev", "eval")


def table_files(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The tables of a folder, of its folder `data`, or of folders named as parts, in order of their names."""
    places = [folder, folder / "data", *(folder / name for name in (*TRAIN_NAMES, *TEST_NAMES))]
    return [
        path
        for place in places
        if place.is_dir()
        for path in sorted(place.iterdir())
        if path.is_file() and path.name.lower().endswith(tuple(suffixes)) and not path.name.startswith(".")
    ]


def divide(source: Path, suffixes: Sequence[str]) -> tuple[list[Path], list[Path], tuple[str, ...]]:
    """Training files, test files and notes.

    `train.parquet`, `train-00000-of-00002.parquet` and `train/0000.parquet` are training data, and so on; when no
    name says what it is, all of them are.

    Raises:
        ValueError: when there are test files, but no training files.
    """
    if source.is_file():
        return [source], [], ()
    parts: dict[str, list[Path]] = {}
    for path in table_files(source, suffixes):
        parts.setdefault(_part_of(path, source), []).append(path)
    train = [path for name in TRAIN_NAMES for path in parts.pop(name, [])]
    held_out = [name for name in TEST_NAMES if name in parts]
    unnamed = parts.get("", [])
    if not train and held_out:
        listed = ", ".join(path.relative_to(source).as_posix() for paths in parts.values() for path in paths)
        raise ValueError(f"expected a training file such as train{suffixes[0]} in {source}, found only {listed}")
    if not train:
        notes = (f"{len(unnamed)} files were joined",) if len(unnamed) > 1 else ()
        return unnamed, [], notes
    left_out = held_out[1:] + [path.name for path in unnamed]
    notes = (f"left out: {', '.join(left_out)}",) if left_out else ()
    return train, parts[held_out[0]] if held_out else [], notes


def _part_of(path: Path, source: Path) -> str:
    """The part that a file's name, or else its folder's, says it belongs to."""
    names = (path.name.lower(), path.parent.name.lower() if path.parent != source else "")
    for name in names:
        for part in (*TRAIN_NAMES, *TEST_NAMES):
            if re.match(rf"{part}(?![a-z])", name):
                return part
    return ""
