"""Arrow tables -> images or features: which column is what, and what stands in it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lcmat.data.pixels import ImageStack
from lcmat.data.raw import Raw, RawPart

LABEL_NAMES = ("label", "labels", "target", "class", "y")
_ROW_NAMES = ("id", "index", "unnamed: 0", "__index_level_0__", "")


@dataclass(frozen=True)
class Shard:
    """One table and what its rows are called in names and errors: `train.csv` gives `train.csv:row 12`.

    Attributes:
        where: what it is called.
        table: its rows.
        opens_paths: whether an image given by its path alone is read from there.
    """

    where: str
    table: pa.Table
    opens_paths: bool = False


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are.

    Attributes:
        label: the label's.
        image: the image's, or None for a table of features.
        features: the features', in order; none for images.
        row_names: the column that names the rows of a table of features, or None.
        class_names: of the label, where the schema has them.
        notes: what was decided.
    """

    label: str
    image: str | None
    features: tuple[str, ...]
    row_names: str | None
    class_names: tuple[str, ...]
    notes: tuple[str, ...]


def image_columns(schema: pa.Schema) -> list[str]:
    """The columns that hold encoded images."""
    marked = [name for name, kind in _features(schema).items() if kind.get("_type") == "Image" and name in schema.names]
    return marked or [field.name for field in schema if _holds_bytes(field.type)]


def plan(table: pa.Table, where: str, *, label: str | None, image: str | None) -> Columns:
    """Tell the columns apart.

    Raises:
        ValueError: when one that was asked for is missing, or the choice is not clear; the message lists them.
    """
    schema = table.schema
    listed = ", ".join(f"{field.name!r} ({field.type})" for field in schema)
    if len(set(schema.names)) != len(schema.names):
        raise ValueError(f"expected columns with different names in {where}, got {listed}")
    for option, name in (("label", label), ("image", image)):
        if name is not None and name not in schema.names:
            raise ValueError(f"there is no column {option}={name!r} in {where}; its columns: {listed}")
    images = [image] if image is not None else image_columns(schema)
    if len(images) > 1:
        raise ValueError(f"{where} has more than one image column; name one with image=: {', '.join(images)}")
    if images and not _holds_bytes(schema.field(images[0]).type):
        raise ValueError(f"column {images[0]!r} of {where} holds {schema.field(images[0]).type}, not encoded images")
    chosen, note = (label, "") if label is not None else _label_column(schema, images, where, listed)
    notes = [note] if note else []
    row_names = None
    if not images:
        row_names = _row_names(table, chosen)
        if row_names is not None:
            notes.append(f"column {row_names!r} was taken for the names of the rows, not for a feature")
    features = () if images else tuple(name for name in schema.names if name not in {chosen, row_names})
    names = _features(schema).get(chosen, {}).get("names") or ()
    class_names = tuple(map(str, names)) if isinstance(names, list) else ()
    return Columns(chosen, images[0] if images else None, features, row_names, class_names, tuple(notes))


def read(
    train: Sequence[Shard], test: Sequence[Shard], *, label: str | None, image: str | None, resize: int | None
) -> Raw:
    """The rows of the tables of both parts; the first table says what the columns are.

    Raises:
        ValueError: as `plan` and `read_part` do.
    """
    columns = plan(train[0].table, train[0].where, label=label, image=image)
    fitted, notes = read_part(train, columns, resize=resize)
    held_out, test_notes = read_part(test, columns, resize=resize) if test else (None, ())
    schema = train[0].table.schema
    named = all(_is_number(schema.field(name).type) for name in columns.features)  # a column of vectors has one name
    return Raw(
        fitted,
        held_out,
        columns.class_names,
        notes=(*columns.notes, *dict.fromkeys((*notes, *test_notes))),
        feature_names=columns.features if named else (),
    )


def read_part(shards: Sequence[Shard], columns: Columns, *, resize: int | None) -> tuple[RawPart, tuple[str, ...]]:
    """The rows of some tables, one after the other, and notes.

    Raises:
        ValueError: for a missing column, label or value, text among the features, or an image that does not decode.
    """
    if not any(len(shard.table) for shard in shards):
        raise ValueError(f"expected at least one sample, got none: {shards[0].where} is empty")
    for shard in shards:
        wanted = [columns.label, *([columns.image] if columns.image else columns.features)]
        if missing := [name for name in wanted if name not in shard.table.schema.names]:
            raise ValueError(f"{shard.where} lacks the columns {', '.join(map(repr, missing))} that the first file has")
    labels = np.concatenate([_labels(shard, columns.label) for shard in shards])
    if columns.image is not None:
        stack = ImageStack(len(labels), resize=resize)
        for shard in shards:
            _decode(shard, columns.image, stack)
        return RawPart(stack.finish(), labels, tuple(stack.names)), stack.notes()
    if resize is not None:
        raise ValueError(f"resize= is for images, but {shards[0].where} has no image column; leave it out")
    features = np.concatenate([_feature_matrix(shard, columns.features) for shard in shards])
    names = [name for shard in shards for name in _names(shard, columns.row_names)]
    return RawPart(features, labels, tuple(names)), ()


def _features(schema: pa.Schema) -> dict[str, dict[str, Any]]:
    """What the `datasets` library wrote about the columns into the schema's metadata."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {name: kind for name, kind in features.items() if isinstance(kind, dict)}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _holds_bytes(kind.field("bytes").type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _is_vector(kind: pa.DataType) -> bool:
    vectors = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(vectors and _is_number(kind.value_type))


def _label_column(schema: pa.Schema, images: list[str], where: str, listed: str) -> tuple[str, str]:
    """The label's column, and what to say when its name did not tell."""
    marked = [name for name, kind in _features(schema).items() if kind.get("_type") == "ClassLabel"]
    marked = [name for name in marked if name in schema.names]
    named = marked or [name for name in schema.names if name.lower() in LABEL_NAMES and name not in images]
    if len(named) == 1:
        return named[0], ""
    if not named:
        possible = [field.name for field in schema if field.name not in images and _is_text(field.type)]
        if images:
            possible = [f.name for f in schema if _is_text(f.type) or pa.types.is_integer(f.type)]
        elif possible != schema.names[-1:]:
            possible = []
        if len(possible) == 1:
            return possible[0], f"label column: {possible[0]!r}"
    raise ValueError(f"cannot tell the label column of {where}; name it with label=. Its columns: {listed}")


def _row_names(table: pa.Table, label: str) -> str | None:
    """A column called id or index in which no value comes twice."""
    for name in table.schema.names:
        if name != label and name.lower() in _ROW_NAMES and pc.count_distinct(table[name]).as_py() == len(table):
            return str(name)
    return None


def _names(shard: Shard, column: str | None) -> list[str]:
    if column is not None and column in shard.table.schema.names:
        return [str(value) for value in shard.table[column].to_pylist()]
    return [f"{shard.where}:row {row}" for row in range(len(shard.table))]


def _labels(shard: Shard, name: str) -> NDArray[Any]:
    column = shard.table[name]
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise ValueError(f"expected a label for every sample, but {shard.where}:row {row} has none; fill or drop it")
    if _is_text(column.type):
        return np.array(column.to_pylist(), dtype=object)
    if not _is_number(column.type):
        raise ValueError(f"expected whole numbers or text in label column {name!r} of {shard.where}, got {column.type}")
    return np.asarray(column.to_numpy())


def _decode(shard: Shard, name: str, stack: ImageStack) -> None:
    row = 0
    # A slice at a time: what Arrow holds is copied into Python objects on the way.
    for batch in shard.table.select([name]).to_batches(max_chunksize=1024):
        chunk = batch.column(0)
        structured = pa.types.is_struct(chunk.type)
        contents = pc.struct_field(chunk, "bytes") if structured else chunk
        has_paths = structured and chunk.type.get_field_index("path") >= 0
        paths = pc.struct_field(chunk, "path").to_pylist() if has_paths else [None] * len(chunk)
        for content, path in zip(contents.to_pylist(), paths, strict=True):
            called = path or f"{shard.where}:row {row}"
            if content is None and not (path and shard.opens_paths):
                raise ValueError(f"expected an image in {shard.where}:row {row}, found no bytes; fill or drop it")
            try:
                stack.add(Path(path) if content is None else content, called)
            except ValueError as error:
                if path:  # which may be none that this machine has
                    raise ValueError(f"{shard.where}:row {row}: {error}") from None
                raise
            row += 1


def _feature_matrix(shard: Shard, names: tuple[str, ...]) -> NDArray[np.float32]:
    kinds = {name: shard.table.schema.field(name).type for name in names}
    if unusable := [f"{name!r} ({kind})" for name, kind in kinds.items() if not (_is_number(kind) or _is_vector(kind))]:
        raise ValueError(
            f"expected numbers in the feature columns of {shard.where}, but these hold something else: "
            f"{', '.join(unusable)}; encode or drop them, or name the label column with label="
        )
    if not names:
        raise ValueError(f"expected feature columns in {shard.where} beside the label, got none")
    columns = [_vectors(shard, name) if _is_vector(kinds[name]) else _numbers(shard, name) for name in names]
    matrix = np.empty((len(shard.table), sum(column.shape[1] for column in columns)), np.float32)
    start = 0
    for name, column in zip(names, columns, strict=True):
        with np.errstate(over="ignore"):  # too large for float32: the next line says so
            matrix[:, start : start + column.shape[1]] = column
        bad = np.flatnonzero(~np.isfinite(matrix[:, start : start + column.shape[1]]).all(1))
        if len(bad):
            raise ValueError(
                f"expected finite numbers, but column {name!r} of {shard.where} is missing, NaN or infinite in "
                f"{len(bad):,} rows, the first row {bad[0]}; fill or drop them"
            )
        start += column.shape[1]
    return matrix


def _numbers(shard: Shard, name: str) -> NDArray[Any]:
    column = shard.table[name]
    if pa.types.is_boolean(column.type) or column.null_count:
        column = column.cast(pa.float64())  # a missing value becomes NaN
    return np.asarray(column.to_numpy())[:, None]


def _vectors(shard: Shard, name: str) -> NDArray[Any]:
    column = shard.table[name].combine_chunks()
    lengths = pc.list_value_length(column)
    spread = pc.min_max(lengths).as_py()
    if lengths.null_count or spread["min"] != spread["max"] or not spread["min"]:
        raise ValueError(f"expected vectors of one length in column {name!r} of {shard.where}, got {spread}")
    values = pc.list_flatten(column).cast(pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(-1, spread["min"])
