import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.sample_files import pixels
from lcmat.data.restricted_pickle import read_dictionary


class Trap:
    """Unpickled without restriction, it writes a file."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def test_what_the_archives_hold_is_read() -> None:
    array = pixels(4, 6)
    content = {b"data": array, b"labels": [1, 2], b"filenames": [b"a.png", b"b.png"], "text": "x", "t": (1, None, 2.5)}
    value = read_dictionary(pickle.dumps(content, protocol=2), "batch")
    assert np.array_equal(value.pop("data"), array)
    assert value == {"labels": [1, 2], "filenames": [b"a.png", b"b.png"], "text": "x", "t": (1, None, 2.5)}


def test_columns_first_arrays_are_read() -> None:
    array = np.asfortranarray(pixels(4, 6))
    assert np.array_equal(read_dictionary(pickle.dumps({"a": array}, protocol=2), "batch")["a"], array)


def test_python_2_pickles_are_read() -> None:
    # {'labels': [1], 'data': array([[7, 8]], dtype=uint8)} as Python 2 writes it
    content = (
        b"\x80\x02}(U\x06labels]K\x01aU\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x01K\x02\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U\x02\x07\x08tbu."
    )
    value = read_dictionary(content, "batch")
    assert value["labels"] == [1]
    assert value["data"].tolist() == [[7, 8]]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("nested", [True, False])
def test_a_malicious_pickle_is_refused_and_does_nothing(tmp_path: Path, protocol: int, nested: bool) -> None:
    target = tmp_path / "ran"
    trap = Trap(os.mkdir, str(target))
    content = pickle.dumps({"data": [trap]} if nested else trap, protocol=protocol)
    with pytest.raises(ValueError, match=r"batch was refused or is damaged: it asks for (posix|nt)\."):
        read_dictionary(content, "batch")
    assert not target.exists()
    pickle.loads(content)
    assert target.exists(), "the trap itself does not work"


@pytest.mark.parametrize(
    "value",
    [
        Trap(eval, "1"),
        Trap(getattr, "a", "upper"),
        Trap(np.load, "x"),
        Trap(np.ndarray, (10**12,)),
        Trap(np.dtype, "O"),
        np.array([1, "a"], dtype=object),
        np.zeros(3, np.float32),
        np.uint8(3),
        {1, 2},
        complex(1, 2),
        Path("x"),
    ],
)
def test_whatever_the_archives_do_not_need_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="batch was refused or is damaged"):
        read_dictionary(pickle.dumps({"data": value}, protocol=2), "batch")


def test_objects_outside_are_refused() -> None:
    with pytest.raises(ValueError, match="refers to an object outside"):
        read_dictionary(b"\x80\x02X\x01\x00\x00\x00aQ.", "batch")


@pytest.mark.parametrize("content", [b"", b"text", b"\x80\x02}", pickle.dumps({"a": pixels(50)}, protocol=2)[:-20]])
def test_damaged_pickles_are_named(content: bytes) -> None:
    with pytest.raises(ValueError, match="batch was refused or is damaged"):
        read_dictionary(content, "batch")


def test_something_else_than_a_dictionary_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a dictionary in batch, got list"):
        read_dictionary(pickle.dumps([1]), "batch")
