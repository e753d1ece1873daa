"""CIFAR-10 and CIFAR-100 as their authors publish them: binary or python version, packed or unpacked.

Archives are read in memory, member by member; nothing is written to disk, so that no path in them can escape.
"""

import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lcmat.data.pixels import resize_images
from lcmat.data.raw import Raw, RawPart
from lcmat.data.restricted_pickle import read_dictionary

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32
_BINARY = re.compile(r"(data_batch_\d+|test_batch|train|test)\.bin|(batches\.meta|(fine|coarse)_label_names)\.txt")
_PYTHON = re.compile(r"data_batch_\d+|test_batch|train|test|batches\.meta|meta")
_FOLDERS = ("cifar-10-batches-bin", "cifar-10-batches-py", "cifar-100-binary", "cifar-100-python")
_ARCHIVES = (".tar.gz", ".tgz", ".tar")
_LARGEST_MEMBER = 200 * 10**6  # the largest real one, train of CIFAR-100, has 155 MB
_LARGEST_ARCHIVE = 10**9


def detect(source: object) -> bool:
    """Whether the source is an archive called cifar, or a folder with what is in one."""
    if not isinstance(source, Path):
        return False
    if source.is_file():
        return source.name.lower().endswith(_ARCHIVES) and "cifar" in source.name.lower()
    return _batch_folder(source) is not None


def read(source: Path, *, label: str | None = None, resize: int | None = None) -> Raw:
    """Read an archive.

    Args:
        source: the archive, or the folder it unpacks to.
        label: of CIFAR-100, "fine" (100 classes, the default) or "coarse" (20).
        resize: pixels.

    Raises:
        ValueError: for a damaged archive, or a pickle that asks for more than arrays of bytes.
    """
    files = _read_archive(source) if source.is_file() else _read_folder(source)
    hundred = any(name in files for name in ("train", "train.bin"))
    if label is not None and (not hundred or label not in {"fine", "coarse"}):
        raise ValueError(f"label= of CIFAR-100 is 'fine' or 'coarse', and CIFAR-10 has none; got {label!r}")
    kind = (label or "fine") if hundred else ""
    train_names = sorted(name for name in files if name.startswith(("data_batch", "train")))
    test_names = [name for name in files if name.startswith("test")]
    if not train_names:
        raise ValueError(f"expected the training batches of CIFAR in {source}, found {', '.join(files) or 'none'}")
    try:
        class_names = _class_names(files, kind)
        train, notes = _part(files, train_names, kind, resize)
        test = _part(files, test_names, kind, resize)[0] if test_names else None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return Raw(train, test, class_names, flip=True, notes=notes)


def _batch_folder(source: Path) -> Path | None:
    for folder in (source, *(source / name for name in _FOLDERS)):
        ten = any((folder / f"data_batch_1{suffix}").is_file() for suffix in ("", ".bin"))
        hundred = (folder / "train.bin").is_file() or all((folder / name).is_file() for name in ("train", "meta"))
        if ten or hundred:
            return folder
    return None


def _read_folder(source: Path) -> dict[str, bytes]:
    folder = _batch_folder(source) or source
    return _one_version({path.name: path.read_bytes() for path in sorted(folder.iterdir()) if _is_wanted(path.name)})


def _read_archive(source: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(source) as archive:
            return _one_version(dict(_members(archive, source)))
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        why = str(error).partition("\n")[0].rstrip(":")  # the rest lists the kinds of packing that were tried
        raise ValueError(f"{source} cannot be read: {why}; is the file whole?") from None


def _members(archive: tarfile.TarFile, source: Path) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.size > _LARGEST_MEMBER or member.offset_data + member.size > _LARGEST_ARCHIVE:
            raise ValueError(f"{source} is no CIFAR archive: {member.name!r} makes it larger than any of those")
        name = member.name.rsplit("/", 1)[-1]
        if member.isreg() and _is_wanted(name):
            file = archive.extractfile(member)
            yield name, file.read() if file else b""


def _is_wanted(name: str) -> bool:
    return bool(_BINARY.fullmatch(name) or _PYTHON.fullmatch(name))


def _one_version(files: dict[str, bytes]) -> dict[str, bytes]:
    """The binary files, where there are any; else the pickles."""
    if any(name.endswith(".bin") for name in files):
        return {name: content for name, content in files.items() if _BINARY.fullmatch(name)}
    return {name: content for name, content in files.items() if _PYTHON.fullmatch(name)}


def _class_names(files: Mapping[str, bytes], kind: str) -> tuple[str, ...]:
    """From the file that has them; empty without one."""
    text_name = f"{kind}_label_names.txt" if kind else "batches.meta.txt"
    if text_name in files:
        return tuple(line.strip() for line in files[text_name].decode("latin1").splitlines() if line.strip())
    pickled_name, key = ("meta", f"{kind}_label_names") if kind else ("batches.meta", "label_names")
    if pickled_name not in files:
        return ()
    names = read_dictionary(files[pickled_name], pickled_name).get(key, [])
    return tuple(name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names)


def _part(
    files: Mapping[str, bytes], names: list[str], kind: str, resize: int | None
) -> tuple[RawPart, tuple[str, ...]]:
    read_batch = _binary_batch if names[0].endswith(".bin") else _python_batch
    batches = [read_batch(files[name], name, kind) for name in names]
    pixels, notes = resize_images(np.concatenate([batch.inputs for batch in batches]), resize)
    labels = np.concatenate([batch.labels for batch in batches])
    return RawPart(pixels, labels, tuple(row for batch in batches for row in batch.names)), notes


def _binary_batch(content: bytes, name: str, kind: str) -> RawPart:
    """Rows of one label (CIFAR-100: coarse, then fine) and 3 × 32 × 32 bytes."""
    head = 2 if kind else 1
    if not content or len(content) % (head + _PIXELS):
        raise ValueError(f"{name} is damaged: {len(content):,} bytes are no whole number of images")
    rows = np.frombuffer(content, np.uint8).reshape(-1, head + _PIXELS)
    labels = rows[:, 1 if kind == "fine" else 0].astype(np.int64)
    return RawPart(rows[:, head:].reshape(-1, *_SHAPE), labels, _row_names(name, len(rows)))


def _python_batch(content: bytes, name: str, kind: str) -> RawPart:
    batch = read_dictionary(content, name)
    pixels, labels = batch.get("data"), batch.get(f"{kind}_labels" if kind else "labels")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        raise ValueError(f"expected images of {_PIXELS} bytes in {name}, got {getattr(pixels, 'shape', 'none')}")
    if not isinstance(labels, list) or len(labels) != len(pixels):
        raise ValueError(f"expected {len(pixels):,} labels in {name}, got {len(labels) if labels else 'none'}")
    return RawPart(pixels.reshape(-1, *_SHAPE), _whole_numbers(labels, name), _file_names(batch, name, len(pixels)))


def _whole_numbers(labels: list[object], name: str) -> NDArray[np.int64]:
    if not all(isinstance(label, int) for label in labels):
        raise ValueError(f"expected whole numbers as labels in {name}")
    return np.array(labels, np.int64)


def _file_names(batch: Mapping[str, object], name: str, n: int) -> tuple[str, ...]:
    names = batch.get("filenames")
    if not isinstance(names, list) or len(names) != n:
        return _row_names(name, n)
    return tuple(row.decode("latin1") if isinstance(row, bytes) else str(row) for row in names)


def _row_names(name: str, n: int) -> tuple[str, ...]:
    return tuple(f"{name}:row {row}" for row in range(n))
