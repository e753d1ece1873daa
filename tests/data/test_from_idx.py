import gzip
from pathlib import Path

import numpy as np
import pytest

from data.sample_files import idx_bytes, pixels, write_idx
from lcmat.data import load
from lcmat.types import ImageData

DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    labels = np.arange(20, dtype=np.uint8) % 10
    write_idx(tmp_path / "mnist", "train", pixels(20, 5, 4), labels, packed=False)
    write_idx(tmp_path / "mnist", "t10k", pixels(10, 5, 4, seed=1), labels[:10], packed=True)
    return tmp_path / "mnist"


def test_packed_and_unpacked_files(folder: Path) -> None:
    splits = load(folder)
    assert np.array_equal(splits.train.inputs.numpy(), pixels(20, 5, 4)[:, None])
    assert np.array_equal(splits.test.inputs.numpy(), pixels(10, 5, 4, seed=1)[:, None])
    assert splits.train.labels.tolist() == [*range(10)] * 2
    assert splits.train.class_names == tuple("0123456789")
    assert splits.train.names[3] == "train-images-idx3-ubyte:row 3"
    assert splits.test.names[3] == "t10k-images-idx3-ubyte:row 3"


def test_digits_are_not_mirrored_and_clothes_are(folder: Path) -> None:
    digits = load(folder)
    clothes = load(folder.rename(folder.parent / "Fashion-MNIST"))
    assert isinstance(digits.train, ImageData)
    assert isinstance(clothes.train, ImageData)
    assert (digits.train.flip, clothes.train.flip) == (False, True)
    assert any("never mirrored" in note for note in digits.notes)
    assert any("clothes" in note and "flip= overrides" in note for note in clothes.notes)
    assert clothes.train.class_names[9] == "Ankle boot"


def test_a_file_that_stands_there_twice_is_one(folder: Path) -> None:
    images = folder / "train-images-idx3-ubyte"
    (folder / f"{images.name}.gz").write_bytes(gzip.compress(images.read_bytes()))
    assert len(load(folder).train) == 20


def test_names_with_a_dot_and_no_test_part(tmp_path: Path) -> None:
    (tmp_path / "train-images.idx3-ubyte").write_bytes(idx_bytes(pixels(20, 5, 4)))
    (tmp_path / "train-labels.idx1-ubyte").write_bytes(idx_bytes(np.arange(20, dtype=np.uint8) % 2))
    splits = load(tmp_path)
    assert (len(splits.train), len(splits.test)) == (16, 4)


def test_resize(folder: Path) -> None:
    assert load(folder, resize=4).train.inputs.shape[1:] == (1, 4, 4)


def test_several_data_sets_in_one_folder_are_refused(folder: Path) -> None:
    write_idx(folder, "emnist-letters-train", pixels(2, 5, 4), np.zeros(2, np.uint8), packed=True)
    with pytest.raises(ValueError, match=r"expected one data set .* found , emnist-letters-"):
        load(folder)


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(ValueError, match="in train-labels-idx1-ubyte beside it, found no such file"):
        load(folder)
    (folder / "train-images-idx3-ubyte").unlink()
    with pytest.raises(ValueError, match="expected training images"):
        load(folder)


def damaged(content: bytes, how: str) -> bytes:
    if how == "a huge promise":
        return content[:4] + b"\x7f" + content[5:]
    kinds = {"truncated": content[:-1], "too long": content + b"\0", "empty": b"", "header only": content[:9]}
    return kinds.get(how) if how in kinds else b"\0\0\x0d" + content[3:]  # type: ignore[return-value]


@pytest.mark.parametrize("how", ["truncated", "too long", "empty", "header only", "a huge promise", "of floats"])
@pytest.mark.parametrize("packed", [True, False])
def test_damaged_files_are_named(folder: Path, how: str, packed: bool) -> None:
    path = folder / "train-images-idx3-ubyte"
    content = damaged(path.read_bytes(), how)
    path.unlink()
    if packed:
        path = path.with_name(f"{path.name}.gz")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte(\.gz)?(, its start| is damaged)"):
        load(folder)


def test_a_truncated_gzip_file_is_named(folder: Path) -> None:
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte\.gz cannot be read"):
        load(folder)


def test_counts_must_agree(folder: Path) -> None:
    (folder / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(19, np.uint8)))
    with pytest.raises(ValueError, match=r"has 20 images, but .* has 19 labels"):
        load(folder)


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="needs Debian's package dataset-fashion-mnist")
def test_fashion_mnist_as_debian_installs_it() -> None:
    splits = load(DEBIAN, cache=False)
    assert isinstance(splits.train, ImageData)
    assert (len(splits.train), len(splits.test)) == (60_000, 10_000)
    assert splits.train.images.shape[1:] == (1, 28, 28)
    assert splits.train.class_names[:2] == ("T-shirt/top", "Trouser")
    assert splits.train.mean == pytest.approx((0.2860,), abs=1e-4)
    assert splits.train.flip is True
