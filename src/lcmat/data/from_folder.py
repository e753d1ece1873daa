"""A folder of images: `train/CLASS/*.png` beside `test/CLASS/*.png`, or `CLASS/*.png` alone."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lcmat.data.pixels import ImageStack
from lcmat.data.raw import Raw, RawPart
from lcmat.data.split_files import TEST_NAMES, TRAIN_NAMES

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")


def detect(source: object) -> bool:
    """Whether the source is a folder with folders of images in it or in its folder `train`."""
    return isinstance(source, Path) and source.is_dir() and _has_classes(_train_folder(source))


def read(source: Path, *, resize: int | None = None) -> Raw:
    """Read the images in order of their paths; a class is a folder, whatever folders there are below it.

    Raises:
        ValueError: for an image that does not decode, or of another size, or a name that is not UTF-8.
    """
    train_folder = _train_folder(source)
    train, notes = _read_part(source, train_folder, resize)
    if train_folder == source:
        return Raw(train, notes=notes)
    present = [source / name for name in TEST_NAMES if (source / name).is_dir()]
    usable = [folder for folder in present if _has_classes(folder)]
    test, test_notes = _read_part(source, usable[0], resize) if usable else (None, ())
    if left_out := [folder.name for folder in present if folder not in usable[:1]]:
        test_notes = (*test_notes, f"left out: {', '.join(left_out)}")
    return Raw(train, test, notes=tuple(dict.fromkeys([*notes, *test_notes])))


def _train_folder(source: Path) -> Path:
    """Its folder `train`, where it has one; else the folder itself.

    A folder `train` of pictures alone is a class, beside such as `bus`: CIFAR-100 has one.
    """
    return next(
        (
            path
            for name in TRAIN_NAMES
            if (path := source / name).is_dir() and (_has_classes(path) or not _is_class(path))
        ),
        source,
    )


def _is_class(folder: Path) -> bool:
    return any(path.name.lower().endswith(_SUFFIXES) for path in folder.iterdir())


def _has_classes(part: Path) -> bool:
    return any(name.lower().endswith(_SUFFIXES) for folder in _class_folders(part) for name in _files(folder))


def _read_part(source: Path, part: Path, resize: int | None) -> tuple[RawPart, tuple[str, ...]]:
    found = {folder.name: list(_files(folder)) for folder in _class_folders(part)}
    images = {
        label: sorted(file for file in files if file.lower().endswith(_SUFFIXES)) for label, files in found.items()
    }
    labels = [label for label, files in images.items() for _ in files]
    stack = ImageStack(len(labels), resize=resize)
    for files in images.values():
        for file in files:
            stack.add(Path(file), _name(file, source))
    notes = list(stack.notes())
    where = part.relative_to(source).as_posix() if part != source else "the folder"
    if others := sum(map(len, found.values())) - len(labels):
        notes.append(f"files in {where} that are not images, left out: {others:,}")
    if empty := [label for label, files in images.items() if not files]:
        notes.append(f"folders of {where} without images, left out: {', '.join(empty[:10])}")
    return RawPart(stack.finish(), np.array(labels), tuple(stack.names)), tuple(notes)


def _name(file: str, source: Path) -> str:
    """The path below the source; one of another encoding could be written to no artifact."""
    name = os.path.relpath(file, source).replace(os.sep, "/")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"expected names in UTF-8, got {os.fsencode(name)!r}; rename the file or folder") from None
    return name


def _class_folders(part: Path) -> list[Path]:
    return sorted(path for path in part.iterdir() if path.is_dir() and not path.name.startswith("."))


def _files(folder: Path) -> Iterator[str]:
    """Every file below a folder, hidden ones left out."""
    for root, _, names in os.walk(folder):
        yield from (f"{root}{os.sep}{name}" for name in names if not name.startswith("."))
