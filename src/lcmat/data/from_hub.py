"""Data sets of the `datasets` library: its objects, and by their id on the Hugging Face hub."""

import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcmat.data import columns
from lcmat.data.columns import Shard
from lcmat.data.raw import Raw
from lcmat.data.split_files import TEST_NAMES, TRAIN_NAMES

_PREFIX = "hub:"
_ID = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")
# A mistyped path must not be looked for on the hub.
_FILE = re.compile(r".*\.(npz|csv|parquet|gz|zip|tar|tgz)", re.IGNORECASE)


def detect_id(source: object) -> bool:
    """Whether the source is a text such as `hub:mnist`, or `owner/name` that names no file and no folder."""
    if not isinstance(source, str):
        return False
    looks_so = _ID.fullmatch(source) and not _FILE.fullmatch(source)
    return source.startswith(_PREFIX) or bool(looks_so and not Path(source).parent.exists())


def detect_objects(source: object) -> bool:
    """Whether the source is a `datasets.Dataset`, a `DatasetDict`, or a pair of the former."""
    if isinstance(source, tuple | list):
        return len(source) == 2 and all(_is(part, "Dataset") for part in source)
    return _is(source, "Dataset") or _is(source, "DatasetDict")


def read_id(source: str, *, label: str | None = None, image: str | None = None, resize: int | None = None) -> Raw:
    """Read `owner/name` or `owner/name:configuration` from the hub.

    Raises:
        ValueError: when the `datasets` library is not installed, or finds no such data set.
    """
    name, _, configuration = source.removeprefix(_PREFIX).partition(":")
    try:
        library = importlib.import_module("datasets")
    except ImportError:
        raise ValueError(
            f"there is no path {source!r}; if it is a data set of the hub, run: pip install lcmat[hub]"
        ) from None
    try:
        found = library.load_dataset(name, configuration or None)
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"{source!r} is no path, and the hub did not give such a data set: {error}") from None
    return read_objects(found, label=label, image=image, resize=resize)


def read_objects(source: Any, *, label: str | None = None, image: str | None = None, resize: int | None = None) -> Raw:
    """Read objects of the `datasets` library; a dictionary's parts are told by their names.

    Raises:
        ValueError: when a dictionary has several parts and none for training, or as `columns.read` does.
    """
    train, test, notes = _parts(source)
    held_out = [_shard(test, "test")] if test is not None else []
    raw = columns.read([_shard(train, "train")], held_out, label=label, image=image, resize=resize)
    return replace(raw, notes=(*notes, *raw.notes))


def _is(source: object, name: str) -> bool:
    """Whether it is an object of a class of the `datasets` library, which is not imported for asking."""
    kind = getattr(sys.modules.get("datasets"), name, None)
    return isinstance(kind, type) and isinstance(source, kind)


def _parts(source: Any) -> tuple[Any, Any, tuple[str, ...]]:
    if isinstance(source, tuple | list):
        return source[0], source[1], ()
    if _is(source, "Dataset"):
        return source, None, ()
    train = next((name for name in TRAIN_NAMES if name in source), None)
    if train is None and len(source) != 1:
        raise ValueError(f"expected a part called train, got {', '.join(source) or 'no parts at all'}")
    train = train or next(iter(source))
    test = next((name for name in TEST_NAMES if name in source and name != train), None)
    left_out = [name for name in source if name not in {train, test}]
    return source[train], source[test] if test else None, (f"left out: {', '.join(left_out)}",) if left_out else ()


def _shard(part: Any, where: str) -> Shard:
    table = part.with_format("arrow")[:]
    return Shard(where, table.replace_schema_metadata(part.features.arrow_schema.metadata), opens_paths=True)
