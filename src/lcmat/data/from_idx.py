"""IDX files: MNIST, Fashion-MNIST, EMNIST and the like, gzipped or not."""

import gzip
import io
import math
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from lcmat.data.pixels import resize_images
from lcmat.data.raw import Raw, RawPart

_IMAGES = re.compile(r"(?P<prefix>.*?)(?P<part>train|t10k|test)-images[-.]idx3-ubyte(\.gz)?", re.IGNORECASE)
_UNSIGNED_BYTES = 0x08
_FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"
)  # fmt: skip


@dataclass(frozen=True)
class _Pair:
    prefix: str
    is_train: bool
    images: Path
    labels: Path


def detect(source: object) -> bool:
    """Whether the source is a folder with a file of images in the IDX format."""
    return isinstance(source, Path) and source.is_dir() and bool(_pairs(source))


def read(source: Path, *, resize: int | None = None) -> Raw:
    """Read the training and test images of a folder.

    The format says nothing of what the pictures show. In a folder called fashion they are clothes, which may be
    mirrored; in any other they are taken for digits or letters, which may not.

    Raises:
        ValueError: for a missing, truncated or foreign file, or several data sets in one folder.
    """
    pairs = _pairs(source)
    if len({pair.prefix for pair in pairs}) > 1:
        raise ValueError(
            f"expected one data set in {source}, found {', '.join(sorted({pair.prefix for pair in pairs}))}; "
            "put each into a folder of its own"
        )
    parts = {pair.is_train: _read_part(pair, resize) for pair in pairs}
    if True not in parts:
        raise ValueError(f"expected training images in {source}, found only {pairs[0].images.name}")
    (train, notes), (test, _) = parts[True], parts.get(False, (None, ()))
    fashion = "fashion" in "/".join(source.resolve().parts[-3:]).lower()
    clothes = fashion and set(train.labels.tolist()) <= set(range(len(_FASHION)))
    kind = "clothes (mirroring them is fine)" if fashion else "digits or letters, so they are never mirrored"
    notes = (*notes, f"judging by the folder's name the pictures show {kind}; flip= overrides this")
    return Raw(train, test, _FASHION if clothes else (), flip=fashion, notes=notes)


def _pairs(folder: Path) -> list[_Pair]:
    pairs: dict[tuple[str, bool], _Pair] = {}
    for path in sorted(folder.iterdir()):
        if match := _IMAGES.fullmatch(path.name):
            # A file that stands there both packed and unpacked is one file.
            labels = [other for other in folder.iterdir() if other.name.removesuffix(".gz") == _labels_name(path)]
            key = match["prefix"], match["part"].lower() == "train"
            pairs.setdefault(key, _Pair(*key, path, min(labels, default=folder / _labels_name(path))))
    return list(pairs.values())


def _labels_name(images: Path) -> str:
    return images.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")


def _read_part(pair: _Pair, resize: int | None) -> tuple[RawPart, tuple[str, ...]]:
    if not pair.labels.is_file():
        raise ValueError(f"expected the labels of {pair.images} in {pair.labels.name} beside it, found no such file")
    images, labels = _read_file(pair.images, 3), _read_file(pair.labels, 1)
    if len(images) != len(labels):
        raise ValueError(f"{pair.images} has {len(images):,} images, but {pair.labels} has {len(labels):,} labels")
    names = tuple(f"{pair.images.name.removesuffix('.gz')}:row {row}" for row in range(len(images)))
    pixels, notes = resize_images(images[:, None], resize)
    return RawPart(pixels, labels.astype(np.int64), names), notes


def _read_file(path: Path, axes: int) -> NDArray[np.uint8]:
    """The array of an IDX file: two zero bytes, the type, the number of axes, their lengths, the values."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
            file = cast("io.BufferedIOBase", opened)
            start = file.read(4)
            if start != bytes((0, 0, _UNSIGNED_BYTES, axes)):
                raise ValueError(
                    f"expected an IDX file of bytes with {axes} axes in {path}, its start is {start.hex()}"
                )
            header = file.read(4 * axes)
            if len(header) < 4 * axes:
                raise ValueError(f"{path} is damaged: it ends within its header")
            lengths = np.frombuffer(header, ">u4").tolist()
            size = math.prod(lengths)
            # gzip packs at most 1032 to 1: a header that promises more is refused before memory is taken for it.
            values = np.empty(size if size <= 1100 * path.stat().st_size else 0, np.uint8)
            found = file.readinto(values.data) + len(file.read(1))
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}; is the file whole?") from None
    if found != size:
        raise ValueError(
            f"{path} is damaged: it does not hold the {size:,} values of shape {lengths} that it announces"
        )
    return values.reshape(lengths)
