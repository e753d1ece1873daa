"""Decoded data, kept on disk for the next time; a cache that is damaged, full or read-only is as good as none.

`LCMAT_CACHE` names the folder; the default is the user's cache folder.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from lcmat import files
from lcmat.data.assemble import Facts
from lcmat.data.raw import Raw, RawPart
from lcmat.version import __version__

# Raised by one whenever a loader reads the same files differently.
LAYOUT = 2

_PARTS = ("train", "test")


def folder() -> Path:
    """Where decoded data is kept."""
    if named := os.environ.get("LCMAT_CACHE"):
        return Path(named).expanduser() / "data"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "lcmat" / "data"


class Slot:
    """The place of one source, read with certain options, in the cache.

    The name has two halves: what was asked for (path, kind, options) and the state of its files (names, sizes, times
    of change) with the versions of lcmat and Pillow. An entry of another state is out of date and gives way.
    """

    def __init__(self, path: Path, kind: str, options: Mapping[str, Any]) -> None:
        self._asked = _digest([str(path.resolve()), kind, dict(options)])
        self._state = _digest([LAYOUT, __version__, PIL.__version__, _listing(path)])

    def read(self) -> Raw | None:
        """What was kept, mapped into memory, or None."""
        try:
            with safe_open(self._path(), framework="pt") as file:
                raw = json.loads(file.metadata()["raw"])
                tensors = {name: file.get_tensor(name).numpy() for name in file.keys()}  # noqa: SIM118
                if file.metadata()["crc32"] != _checksum(tensors):
                    return None
            parts = [
                RawPart(tensors[f"{part}.inputs"], tensors[f"{part}.labels"], _unpack(tensors[f"{part}.names"]))
                if f"{part}.inputs" in tensors
                else None
                for part in _PARTS
            ]
            if parts[0] is None:
                return None
            return Raw(
                parts[0],
                parts[1],
                tuple(raw["class_names"]),
                raw["flip"],
                tuple(raw["notes"]),
                tuple(raw["feature_names"]),
            )
        except (OSError, SafetensorError, ValueError, KeyError, TypeError):
            return None

    def write(self, raw: Raw) -> str:
        """Keep data; returns what there is to say when that failed, else nothing."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, part in zip(_PARTS, (raw.train, raw.test), strict=True):
            if part is not None:
                arrays[f"{name}.inputs"] = part.inputs
                arrays[f"{name}.labels"] = part.labels
                arrays[f"{name}.names"] = np.frombuffer(json.dumps(part.names).encode(), np.uint8).copy()
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        described = {
            "class_names": raw.class_names,
            "flip": raw.flip,
            "notes": raw.notes,
            "feature_names": raw.feature_names,
        }
        metadata = {"raw": json.dumps(described), "crc32": _checksum(arrays)}
        try:
            with files.replacing(self._path()) as temporary:
                save_file({name: torch.from_numpy(array) for name, array in arrays.items()}, temporary, metadata)
            self._drop_outdated()
        except (OSError, SafetensorError) as error:
            return f"the decoded data could not be kept in {folder()}: {error}"
        return ""

    def read_facts(self, split: str) -> Facts | None:
        """What was kept of the data in this split, or None."""
        try:
            values = files.read_json(self._path(split))
            return Facts(
                tuple(map(float, values["mean"])),
                tuple(map(float, values["std"])),
                str(values["train_fingerprint"]),
                str(values["test_fingerprint"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_facts(self, split: str, facts: Facts) -> None:
        """Keep what is known of the data in this split, if that is possible."""
        try:
            files.write_json(self._path(split), asdict(facts))
        except OSError:
            return

    def _path(self, split: str | None = None) -> Path:
        name = f"{self._asked}-{self._state}"
        return folder() / (f"{name}.safetensors" if split is None else f"{name}-{_digest(split)}.json")

    def _drop_outdated(self) -> None:
        for old in folder().glob(f"{self._asked}-*"):
            if not old.name.startswith(f"{self._asked}-{self._state}"):
                old.unlink(missing_ok=True)


def _listing(path: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change of a file, or of all files below a folder."""
    if path.is_file():
        stat = path.stat()
        return [(path.name, stat.st_size, stat.st_mtime_ns)]
    found = []
    for root, _, names in os.walk(path):
        for name in names:
            full = os.path.join(root, name)  # noqa: PTH118
            try:
                stat = os.stat(full)  # noqa: PTH116
            except OSError:  # a link to nowhere
                continue
            found.append((os.path.relpath(full, path), stat.st_size, stat.st_mtime_ns))
    return sorted(found)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Guards against a damaged disk; the header's length checks guard against a torn file."""
    value = 0
    for name in sorted(arrays):
        value = zlib.crc32(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data, value)
    return f"{value:08x}"


def _unpack(names: NDArray[Any]) -> tuple[str, ...]:
    return tuple(json.loads(names.tobytes()))
