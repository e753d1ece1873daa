"""The kept rows in forms that other programs read: a table, Parquet with the samples, an image folder."""

import csv
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from torch import Tensor

from lcmat import files
from lcmat.study.pipeline import read_again
from lcmat.study.store import Run
from lcmat.types import Data, FeatureData, ImageData, Subset, SyntheticSet
from lcmat.types.pictures import as_picture, png_bytes

# Each with the ending of a file of that kind.
FORMATS = {"csv": ".csv", "parquet": ".parquet", "folder": ""}


def pick_subset(run: Run, name: str | None) -> Path:
    """The folder of one of the run's subsets: the one named, such as '0.05', or the only one.

    Raises:
        ValueError: when there is none of this name, or several and none is named.
    """
    folders = {folder.name: folder for folder in run.subset_folders()}
    if name is None and len(folders) > 1:
        raise ValueError(f"{run.path} holds several subsets; name one with --subset: {', '.join(folders)}")
    if name is not None and name not in folders:
        raise ValueError(f"{run.path} holds no subset {name!r}; it has {', '.join(folders)}")
    return folders[name] if name is not None else next(iter(folders.values()))


def export_subset(run: Run, folder: Path, form: str, target: Path) -> Path:
    """Write the rows of a subset, whole or not at all, in the order in which they were picked.

    Args:
        run: whose data is read again.
        folder: of the subset.
        form: 'csv': index, class, name, weight and order of each row, and a table's features; 'parquet': the samples
            and labels, as `lcmat.load` and the `datasets` library read them; 'folder': `CLASS/NAME.png`.
        target: the file or folder to write; it must not exist yet.
    """
    subset = Subset.load(folder)
    kept = subset.apply(read_again(run).train)
    writers: Mapping[str, Callable[[Subset, Data, Path], None]] = {
        "csv": _write_csv,
        "parquet": _write_parquet,
        "folder": _write_pictures,
    }
    if target.exists():
        raise ValueError(f"{target} exists already; name another path")
    writers[form](subset, kept, target)
    return target


def export_synthetic(tiny: SyntheticSet, form: str, target: Path) -> Path:
    """Write the decoded samples of a synthetic set, whole or not at all.

    Args:
        tiny: the set.
        form: 'parquet': samples and labels, with a column `soft` where images have soft labels; 'folder':
            `CLASS/NUMBER.png`.
        target: the file or folder to write; it must not exist yet.

    Raises:
        ValueError: for another form, a target that exists, or soft labels that the form cannot hold.
    """
    if target.exists():
        raise ValueError(f"{target} exists already; name another path")
    kept = tiny.data()
    if tiny.soft is not None and not (form == "parquet" and tiny.are_images):
        raise ValueError(f"the soft labels of this set would be lost in this form, {form!r}; its folder keeps them")
    if form == "parquet":
        _write_samples(range(len(kept)), kept, target, soft=tiny.soft)
    elif form == "folder":
        _write_pictures(range(len(kept)), kept, target)
    else:
        raise ValueError(f"a synthetic set is exported to parquet or folder, got {form!r}")
    return target


def _write_csv(subset: Subset, kept: Data, target: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    columns = kept.feature_names if isinstance(kept, FeatureData) else ()
    about = ["index", "class", "name", "weight", "order"]
    writer.writerow([*(f"lcmat_{name}" if name in columns else name for name in about), *columns])
    names = kept.names or ("",) * len(kept)
    values = kept.inputs.numpy() if columns else [()] * len(kept)
    rows = zip(subset, kept.labels.tolist(), names, subset.weights.tolist(), values, strict=True)
    for order, (index, label, name, weight, row) in enumerate(rows):
        writer.writerow([index, kept.class_names[label], name, f"{weight:.12g}", order, *row])
    files.write_text(target, text.getvalue())


def _write_parquet(subset: Subset, kept: Data, target: Path) -> None:
    # In a table of features a column of weights would be read as one more feature; the CSV has them.
    _write_samples(subset, kept, target, weights=subset.weights if isinstance(kept, ImageData) else None)


def _write_samples(
    rows: Sequence[int], kept: Data, target: Path, *, weights: Tensor | None = None, soft: Tensor | None = None
) -> None:
    label = {"names": list(kept.class_names), "_type": "ClassLabel"}
    columns: dict[str, Any] = {"index": pa.array(list(rows), pa.int64()), "label": pa.array(kept.labels.tolist())}
    features: dict[str, Any] = {"index": {"dtype": "int64", "_type": "Value"}, "label": label}
    if isinstance(kept, ImageData):
        names = kept.names or tuple(map(str, rows))
        encoded = [
            {"bytes": png_bytes(as_picture(image)), "path": name}
            for image, name in zip(kept.images, names, strict=True)
        ]
        columns["image"] = pa.array(encoded, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
        features["image"] = {"_type": "Image"}
    elif kept.feature_names and not {"index", "label"} & set(kept.feature_names):
        for name, values in zip(kept.feature_names, kept.features.T, strict=True):
            columns[name] = pa.array(values.numpy())
            features[name] = {"dtype": "float32", "_type": "Value"}
    else:
        columns["features"] = pa.array(kept.features.tolist(), pa.list_(pa.float32()))
        features["features"] = {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"}
    if weights is not None:
        columns["weight"] = pa.array(weights.tolist())
        features["weight"] = {"dtype": "float64", "_type": "Value"}
    if soft is not None:
        columns["soft"] = pa.array(soft.tolist(), pa.list_(pa.float32()))
        features["soft"] = {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table(columns).replace_schema_metadata(metadata)
    content = io.BytesIO()
    pyarrow.parquet.write_table(table, content)
    files.write_bytes(target, content.getvalue())


def _write_pictures(rows: Sequence[int], kept: Data, target: Path) -> None:
    if not isinstance(kept, ImageData):
        raise ValueError("only images make an image folder, and this data is feature vectors; use csv or parquet")
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        names = kept.names or ("",) * len(kept)
        folders = _folder_names(kept.class_names)
        for index, image, label, name in zip(rows, kept.images, kept.labels.tolist(), names, strict=True):
            folder = building / folders[label]
            folder.mkdir(exist_ok=True)
            path = folder / f"{_stem(name) if name else index}.png"
            while path.exists():
                path = path.with_stem(f"{path.stem}-{index}")
            with files.naming(target):
                path.write_bytes(png_bytes(as_picture(image)))
        building.chmod(0o755)
        building.replace(target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise


def _folder_names(class_names: Sequence[str]) -> list[str]:
    """A folder for each class, never one for two: '+' and '−' are both '_' as file names.

    Example:
        >>> _folder_names(["cat", "+", "−", "a/b", "Cat"])
        ['cat', '_', '_-2', 'a-b', 'Cat-4']
    """
    found: dict[str, str] = {}  # by lower case, as some file systems do not tell capitals apart
    for index, class_name in enumerate(class_names):
        name = _plain(class_name)
        while name.lower() in found:
            name = f"{name}-{index}"
        found[name.lower()] = name
    return list(found.values())


def _stem(name: str) -> str:
    """The name of a picture's file, without its ending: that of the file it came from, or its row in one.

    Example:
        >>> _stem("train/cat/cat 7.jpg"), _stem("signs.npz:x:row 29")
        ('cat-7', 'signs.npz-x-row-29')
    """
    path = Path(name)
    return _plain(path.name if re.search(r":row \d+$", name) else path.stem)


def _plain(name: str) -> str:
    """A name without what a file name must not hold; never '.' or '..'."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "_"
