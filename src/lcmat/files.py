"""Reading and writing so that nothing is lost or half-written: atomic files, checked artifacts, fingerprints.

An artifact is a folder with `NAME.json`, which is written last and names its tensor file by content, so that a
crash between the two leaves the old artifact whole. Tensors are safetensors; nothing here reads a pickle.
"""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as serialise_tensors


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the system that does not, as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file in the same folder, renamed over `path` when the block ends well and removed when it does not.

    Raises:
        OSError: when the folder cannot be written, or the path is one; the old file is then untouched.
    """
    path = Path(path)
    if path.is_dir():  # the renaming would fail too, and name the temporary file
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with naming(path):
            yield temporary
        # mkstemp makes files private; an artifact is as readable as the umask allows any new file to be.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write a file whole or not at all: a temporary file in the same folder, flushed, then renamed over the old one.

    Raises:
        OSError: when the disk is full or the folder cannot be written; the old file is then untouched.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return Path(path)


def write_text(path: str | Path, text: str) -> Path:
    """`write_bytes` for text, in UTF-8."""
    return write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> Path:
    """`write_bytes` for a JSON value, indented, keys as given; NaN and infinities are refused, as JSON has none."""
    return write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    """The JSON value of a file.

    Raises:
        ValueError: when the file is missing or is not JSON; the message names it.
    """
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"expected a JSON file at {path}, found none") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"expected JSON in {path}, but it does not parse: {error}; is the file damaged?") from None


def append_json_line(path: str | Path, value: Any) -> None:
    """Add one record to a JSON Lines file and flush it to the disk, so that a killed run keeps what it measured."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("ab") as file:
        # A kill in the middle of an earlier write leaves a torn last line; the new record starts on its own.
        torn = file.tell() > 0 and path.read_bytes()[-1:] != b"\n"
        line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
        file.write((b"\n" if torn else b"") + line.encode())
        file.flush()
        os.fsync(file.fileno())


def read_json_lines(path: str | Path) -> list[Any]:
    """The records of a JSON Lines file, without a torn last line; an absent file has none."""
    path = Path(path)
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def save_artifact(folder: str | Path, name: str, meta: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> Path:
    """Write `NAME.json` and its tensors into a folder, atomically as a pair; returns the folder."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"expected a folder to save to, but {folder} is a file; name another path")
    content = serialise_tensors({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    tensor_file = f"{name}-{digest[:12]}.safetensors"
    write_bytes(folder / tensor_file, content)
    write_json(folder / f"{name}.json", {**meta, "tensors": {"file": tensor_file, "sha256": digest}})
    for old in folder.glob(f"{name}-????????????.safetensors"):
        if old.name != tensor_file:
            old.unlink(missing_ok=True)
    return folder


def load_artifact(folder: str | Path, name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read what `save_artifact` wrote.

    Raises:
        ValueError: when the folder is no such artifact, or its tensors are missing, damaged or from elsewhere.
    """
    folder = Path(folder)
    if not (folder / f"{name}.json").is_file():
        raise ValueError(f"expected a saved {name} in {folder}, but there is no {name}.json; check the path")
    meta = read_json(folder / f"{name}.json")
    try:
        entry = meta.pop("tensors")
        tensor_file, digest = str(entry["file"]), str(entry["sha256"])
    except (AttributeError, KeyError, TypeError):
        raise ValueError(f"{folder / name}.json does not describe a saved {name}: no tensor file is named") from None
    if Path(tensor_file).name != tensor_file:
        raise ValueError(f"{folder / name}.json names a tensor file outside its folder: {tensor_file!r}")
    try:
        content = (folder / tensor_file).read_bytes()
    except FileNotFoundError:
        raise ValueError(f"the tensor file {tensor_file} is missing from {folder}; copy the whole folder") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{folder / tensor_file} is damaged: its content differs from its recorded checksum")
    try:
        return meta, parse_tensors(content)
    except SafetensorError as error:
        raise ValueError(f"{folder / tensor_file} is no safetensors file: {error}") from None


def fingerprint(*parts: torch.Tensor | np.ndarray[Any, Any] | str | Iterable[str]) -> str:
    """A hexadecimal digest of tensors and texts: types, shapes and contents, in order.

    Example:
        >>> import torch
        >>> fingerprint(torch.arange(3)) == fingerprint(torch.arange(3).reshape(3, 1))
        False
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.Tensor | np.ndarray):
            kind, array = _as_array(part)
            digest.update(f"array {kind} {array.shape}\n".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        else:
            texts = [part] if isinstance(part, str) else list(part)
            digest.update(json.dumps(texts).encode())
    return digest.hexdigest()


def _as_array(part: torch.Tensor | np.ndarray[Any, Any]) -> tuple[str, np.ndarray[Any, Any]]:
    """The name of the type of the numbers, and the numbers; bfloat16, which NumPy does not have, as its bits."""
    if isinstance(part, torch.Tensor):
        short = part.dtype == torch.bfloat16
        array = np.ascontiguousarray((part.detach().view(torch.int16) if short else part.detach()).cpu().numpy())
        return "bfloat16" if short else array.dtype.str, array
    return part.dtype.str, np.ascontiguousarray(part)
