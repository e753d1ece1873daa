"""Reading the pickles of the CIFAR archives without letting them run anything.

A pickle is a program that may call any function by name. Those of the CIFAR archives need four names, to rebuild
byte arrays; each of the four is answered with a stand-in of ours, and every other name is refused.
"""

import io
import pickle
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray


class _ByteArray:
    """Stands in for a NumPy array that is being rebuilt; only arrays of bytes are."""

    def __init__(self) -> None:
        self.values: NDArray[np.uint8] = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = state
        if not isinstance(kind, _ByteType):
            raise pickle.UnpicklingError("an array of something else than bytes")
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


class _ByteType:
    """Stands in for the type of an array's elements; its state (byte order and the like) says nothing of bytes."""

    def __setstate__(self, state: Any) -> None:
        pass


def _reconstruct(kind: object, shape: object, code: object) -> _ByteArray:  # noqa: ARG001
    return _ByteArray()


def _element_type(code: object, *details: object) -> _ByteType:  # noqa: ARG001
    if code not in {"u1", b"u1"}:
        raise pickle.UnpicklingError(f"an array of {code!r}, not of bytes")
    return _ByteType()


def _encode(text: str, encoding: str) -> bytes:  # noqa: ARG001
    """How Python 3 spells bytes in an old pickle protocol; it has one encoding for that."""
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _element_type,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR archive needs") from None

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError(f"it refers to an object outside, {pid!r}")


def read_dictionary(content: bytes, where: str) -> dict[str, Any]:
    """The dictionary of a CIFAR pickle, keys as text.

    Raises:
        ValueError: when the pickle is damaged, or asks for anything but numbers, text, lists and arrays of bytes.
    """
    try:
        value = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except (
        pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, MemoryError,
        OverflowError, ImportError,
    ) as error:  # fmt: skip
        raise ValueError(f"{where} was refused or is damaged: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a dictionary in {where}, got {type(value).__name__}")
    return {
        key.decode("latin1") if isinstance(key, bytes) else str(key): item.values
        if isinstance(item, _ByteArray)
        else item
        for key, item in value.items()
    }
