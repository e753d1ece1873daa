"""Small data sets of every kind, written where a test wants them."""

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray
from PIL import Image


def pixels(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def encode(array: NDArray[Any], kind: str = "PNG", mode: str | None = None) -> bytes:
    image = Image.fromarray(array)
    file = io.BytesIO()
    (image.convert(mode) if mode else image).save(file, kind)
    return file.getvalue()


def write_image(path: Path, array: NDArray[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def write_image_folder(root: Path, classes: Sequence[str] = ("cat", "dog"), per_class: int = 3) -> Path:
    for index, label in enumerate(classes):
        for row in range(per_class):
            write_image(root / label / f"{row}.png", pixels(6, 6, 3, seed=10 * index + row))
    return root


def write_image_parquet(
    path: Path,
    images: Sequence[bytes | None],
    labels: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    paths: Sequence[str | None] | None = None,
    struct: bool = True,
    label: str = "label",
) -> Path:
    column: pa.Array = pa.array(images, pa.binary())
    if struct:
        given = paths or [None] * len(images)
        column = pa.StructArray.from_arrays([column, pa.array(given, pa.string())], ["bytes", "path"])
    table = pa.table({"img": column, label: pa.array(labels)})
    if names:
        features = {"img": {"_type": "Image"}, label: {"_type": "ClassLabel", "names": list(names)}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    return write_table(path, table)


def write_table(path: Path, columns: Mapping[str, Any] | pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    pyarrow.parquet.write_table(table, path)
    return path


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def write_idx(folder: Path, part: str, images: NDArray[np.uint8], labels: NDArray[np.uint8], *, packed: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
        content = idx_bytes(array)
        path = folder / (name + (".gz" if packed else ""))
        path.write_bytes(gzip.compress(content) if packed else content)
