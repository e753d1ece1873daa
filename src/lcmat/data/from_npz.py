"""NumPy archives: `x`, `y` and perhaps `x_test`, `y_test`; images or feature vectors."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from lcmat.data.pixels import resize_images, to_images
from lcmat.data.raw import Raw, RawPart, as_features

# The names of a part's inputs and labels, the usual ones first.
_TRAIN = (("x", "y"), ("x_train", "y_train"))
_TEST = (("x_test", "y_test"),)


def detect(source: object) -> bool:
    """Whether the source is an `.npz` file."""
    return isinstance(source, Path) and source.is_file() and source.suffix.lower() == ".npz"


def read(source: Path, *, resize: int | None = None) -> Raw:
    """Read an archive; `class_names`, an array of text, may stand beside the parts. Pickled arrays are refused.

    Raises:
        ValueError: for a damaged archive, missing arrays, or shapes and values that are no images and no features.
    """
    try:
        if not zipfile.is_zipfile(source):
            raise zipfile.BadZipFile("it is no archive, or the end of one is missing")
        with source.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            train = _read_part(archive, _TRAIN, source, resize)
            test = _read_part(archive, _TEST, source, resize)
            names = archive["class_names"].tolist() if "class_names" in archive.files else []
            listed = ", ".join(archive.files)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise ValueError(f"{source} cannot be read: {error}; is the file whole?") from None
    if train is None:
        raise ValueError(f"expected the arrays x and y (and x_test, y_test) in {source}, found: {listed or 'none'}")
    return Raw(train[0], test[0] if test else None, tuple(map(str, names)), notes=train[1])


def _read_part(
    archive: NpzFile, names: tuple[tuple[str, str], ...], source: Path, resize: int | None
) -> tuple[RawPart, tuple[str, ...]] | None:
    for inputs_name, labels_name in names:
        if inputs_name in archive.files and labels_name in archive.files:
            where = f"{inputs_name} of {source.name}"
            inputs, labels = (_array(archive, name, source) for name in (inputs_name, labels_name))
            rows = tuple(f"{source.name}:{inputs_name}:row {row}" for row in range(len(inputs)))
            if inputs.ndim == 2:
                if resize is not None:
                    raise ValueError(f"resize= is for images, but {where} holds feature vectors; leave it out")
                return RawPart(as_features(inputs, where), labels, rows), ()
            images, notes = resize_images(to_images(inputs, layout="any", where=where), resize)
            return RawPart(images, labels, rows), notes
    return None


def _array(archive: NpzFile, name: str, source: Path) -> NDArray[Any]:
    try:
        array = archive[name]
    except ValueError as error:  # an object array, or a damaged one
        raise ValueError(
            f"array {name} of {source} cannot be read: {error}; save plain arrays of numbers or text"
        ) from None
    if array.ndim == 0:
        raise ValueError(f"expected one row for each sample in array {name} of {source}, got a single value")
    return np.asarray(array)
