from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.sample_files import pixels
from lcmat.data import load


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("shape", [(6, 7, 5), (6, 7, 5, 1), (6, 7, 5, 3), (6, 3, 7, 5)])
def test_images_of_every_layout(tmp_path: Path, shape: tuple[int, ...]) -> None:
    splits = load(save(tmp_path / "a.npz", x=pixels(*shape), y=np.arange(6) % 2))
    assert splits.train.inputs.shape[1:] == ((3 if 3 in shape else 1), 7, 5)


def test_features_are_float32(tmp_path: Path) -> None:
    features = np.arange(12.0).reshape(6, 2)
    splits = load(save(tmp_path / "a.npz", x=features, y=np.arange(6) % 2, x_test=features, y_test=np.arange(6) % 2))
    assert np.array_equal(splits.train.inputs.numpy(), features.astype(np.float32))
    assert splits.train.mean == pytest.approx((5.0, 6.0))
    assert splits.train.names[2] == "a.npz:x:row 2"


def test_names_that_keras_uses_and_class_names(tmp_path: Path) -> None:
    arrays = {"x_train": pixels(4, 4, 4), "y_train": [[0], [1], [0], [1]], "x_test": pixels(2, 4, 4), "y_test": [0, 1]}
    splits = load(save(tmp_path / "a.npz", **arrays, class_names=["zebra", "ant"]))
    assert splits.train.class_names == ("zebra", "ant")
    assert splits.train.labels.tolist() == [0, 1, 0, 1]
    assert len(splits.test) == 2


def test_labels_may_be_text(tmp_path: Path) -> None:
    splits = load(save(tmp_path / "a.npz", x=pixels(6, 4, 4), y=np.array(["b", "a"] * 3)))
    assert splits.train.class_names == ("a", "b")


def test_resize(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", x=pixels(6, 8, 8), y=np.arange(6) % 2)
    assert load(path, resize=4).train.inputs.shape[1:] == (1, 4, 4)
    features = save(tmp_path / "b.npz", x=np.zeros((6, 3)), y=np.arange(6) % 2)
    with pytest.raises(ValueError, match="resize= is for images"):
        load(features, resize=4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": pixels(2, 3, 3), "labels": [0, 1]}, "expected the arrays x and y .* found: images, labels"),
        ({"x": pixels(2, 3, 3), "y": [0, 1, 0]}, "one label for each of the 2 training samples"),
        ({"x": pixels(2, 3, 3), "y": 1}, "one row for each sample in array y of"),
        ({"x": pixels(2), "y": [0, 1]}, r"of shape \[n, d\] for features"),
        ({"x": np.array([["a"], ["b"]]), "y": [0, 1]}, r"expected numbers of shape \[n, d\]"),
        ({"x": np.full((2, 3, 3), 7.0), "y": [0, 1]}, r"floats in \[0, 1\], got float64 from 7 to 7"),
        ({"x": [[1.0, 2.0], [np.nan, 1.0], [1.0, 1.0]] * 2, "y": [0, 1, 0] * 2}, "finite features, got NaN"),
        ({"x": np.full((4, 1), 1e300), "y": [0, 1] * 2}, "finite features, got NaN or infinity"),
        ({"x": np.zeros((0, 3)), "y": np.zeros(0)}, "the data is empty"),
        ({"x": np.zeros((4, 0)), "y": [0, 1] * 2}, r"numbers of shape \[n, d\]"),
        ({"x": np.zeros((2, 2)), "y": [0.5, 1.0]}, "whole numbers or text as labels, got 0.5"),
    ],
)
def test_unusable_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(save(tmp_path / "a.npz", **arrays))


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "ran")


@pytest.mark.parametrize("name", ["x", "y"])
def test_pickled_arrays_are_never_run(tmp_path: Path, name: str) -> None:
    trap = np.array([Trap(tmp_path / "ran")] * 2, dtype=object)
    arrays = {"x": pixels(2, 3, 3), "y": np.arange(2), name: trap}
    with pytest.raises(ValueError, match=f"array {name} of .* cannot be read.*save plain arrays"):
        load(save(tmp_path / "a.npz", **arrays))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("damage", ["truncated", "no archive", "empty", "a flipped byte"])
def test_a_damaged_archive_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=pixels(20, 9, 9), y=np.arange(20) % 2)
    content = bytearray(path.read_bytes())
    if damage == "a flipped byte":
        content[len(content) // 2] ^= 255
    path.write_bytes(
        {"truncated": bytes(content[:-200]), "no archive": b"text", "empty": b""}.get(damage, bytes(content))
    )
    with pytest.raises(ValueError, match=r"a\.npz cannot be read"):
        load(path)
