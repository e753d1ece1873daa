"""Parquet and CSV: a column of encoded images, or columns of features, and a column of labels."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lcmat.data import columns
from lcmat.data.columns import Shard
from lcmat.data.raw import Raw
from lcmat.data.split_files import divide, table_files

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def detect_parquet(source: object) -> bool:
    """Whether the source is a Parquet file or a folder with some."""
    return _has_tables(source, _PARQUET)


def detect_csv(source: object) -> bool:
    """Whether the source is a CSV file or a folder with some."""
    return _has_tables(source, _CSV)


def read_parquet(source: Path, *, label: str | None = None, image: str | None = None, resize: int | None = None) -> Raw:
    """Read Parquet: images as the `datasets` library writes them (`{bytes, path}`, or plain bytes), or features."""
    return _read(source, _PARQUET, _parquet_table, label=label, image=image, resize=resize)


def read_csv(source: Path, *, label: str | None = None) -> Raw:
    """Read a CSV file (or .tsv, either gzipped) with a header: columns of features and a label.

    A .csv whose first line has more semicolons or tabs than commas, as spreadsheets write it, is read by these.
    """
    return _read(source, _CSV, _csv_table, label=label, image=None, resize=None)


def _has_tables(source: object, suffixes: tuple[str, ...]) -> bool:
    if not isinstance(source, Path):
        return False
    return source.name.lower().endswith(suffixes) if source.is_file() else bool(table_files(source, suffixes))


def _read(
    source: Path,
    suffixes: tuple[str, ...],
    open_table: Callable[[Path], pa.Table],
    *,
    label: str | None,
    image: str | None,
    resize: int | None,
) -> Raw:
    train_files, test_files, notes = divide(source, suffixes)
    base = source if source.is_dir() else source.parent
    train, test = ([_shard(path, base, open_table) for path in paths] for paths in (train_files, test_files))
    raw = columns.read(train, test, label=label, image=image, resize=resize)
    return replace(raw, notes=(*notes, *raw.notes))


def _shard(path: Path, base: Path, open_table: Callable[[Path], pa.Table]) -> Shard:
    where = path.relative_to(base).as_posix()
    try:
        return Shard(where, open_table(path))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}; is the file whole?") from None


def _parquet_table(path: Path) -> pa.Table:
    with pyarrow.parquet.ParquetFile(path) as file:
        return file.read()


def _csv_table(path: Path) -> pa.Table:
    table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter=_delimiter(path)))
    if foreign := [field.name for field in table.schema if pa.types.is_binary(field.type)]:
        raise ValueError(f"expected text in UTF-8 in {path}, but column {foreign[0]!r} holds other; save it as UTF-8")
    if table.num_columns and all(_is_number(name) for name in table.column_names):
        shown = ", ".join(table.column_names[:5])
        raise ValueError(f"expected the names of the columns in the first line of {path}, got numbers: {shown}")
    return table


def _delimiter(path: Path) -> str:
    """What separates the names in the first line: a tab in a .tsv, else a comma, or a semicolon or tab if more."""
    if ".tsv" in path.name.lower():
        return "\t"
    with pa.input_stream(path) as file:
        first, _, _ = file.read(2**16).partition(b"\n")
    return max(",;\t", key=lambda character: first.count(character.encode()))


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
