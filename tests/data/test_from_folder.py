import os
import sys
from pathlib import Path

import numpy as np
import pytest

from data.sample_files import pixels, write_image, write_image_folder
from lcmat.data import load


def test_train_and_test_folders(tmp_path: Path) -> None:
    write_image_folder(tmp_path / "train")
    write_image_folder(tmp_path / "test", per_class=1)
    splits = load(tmp_path)
    assert splits.train.class_names == ("cat", "dog")
    assert splits.train.names == tuple(f"train/{label}/{row}.png" for label in ("cat", "dog") for row in range(3))
    assert splits.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert splits.test.names == ("test/cat/0.png", "test/dog/0.png")
    expected = pixels(6, 6, 3, seed=11).transpose(2, 0, 1)
    assert np.array_equal(splits.train.inputs[4].numpy(), expected)


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_held_out_data_of_another_name_stands_in(tmp_path: Path, name: str) -> None:
    write_image_folder(tmp_path / "train")
    write_image_folder(tmp_path / name, per_class=1)
    assert load(tmp_path).test.names == (f"{name}/cat/0.png", f"{name}/dog/0.png")


def test_a_class_may_be_called_train_or_test(tmp_path: Path) -> None:
    for label in ("bus", "test", "train"):
        for row in range(3):
            write_image(tmp_path / label / f"{row}.png", pixels(6, 6, 3))
    splits = load(tmp_path)
    assert splits.train.class_names == ("bus", "test", "train")
    assert (len(splits.train), len(splits.test)) == (6, 3)


def test_test_goes_before_val_and_that_is_said(tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        write_image_folder(tmp_path / part)
    splits = load(tmp_path)
    assert splits.test.names[0].startswith("test/")
    assert "left out: val" in splits.notes


def test_a_test_folder_without_classes_is_left_out(tmp_path: Path) -> None:
    write_image_folder(tmp_path / "train", per_class=5)
    write_image(tmp_path / "test" / "0.png", pixels(6, 6, 3))
    splits = load(tmp_path)
    assert "left out: test" in splits.notes
    assert all(name.startswith("train/") for name in splits.test.names)


def test_bare_class_folders(tmp_path: Path) -> None:
    splits = load(write_image_folder(tmp_path / "pets", per_class=5))
    assert (len(splits.train), len(splits.test)) == (8, 2)
    assert splits.train.names[0] == "cat/0.png"


@pytest.mark.parametrize("suffix", ["png", "jpg", "jpeg", "webp", "PNG", "bmp", "gif", "ppm", "tiff"])
def test_kinds_of_files(tmp_path: Path, suffix: str) -> None:
    for label in "ab":
        for row in range(2):
            write_image(tmp_path / label / f"{row}.{suffix}", pixels(6, 6, 3))
    assert load(tmp_path).train.inputs.shape == (2, 3, 6, 6)


def test_folders_below_a_class_belong_to_it_and_hidden_files_do_not(tmp_path: Path) -> None:
    write_image_folder(tmp_path)
    write_image(tmp_path / "cat" / "images" / "9.png", pixels(6, 6, 3))
    (tmp_path / "cat" / "._9.png").write_text("what a Mac leaves behind")
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "empty").mkdir()
    (tmp_path / ".git").mkdir()
    splits = load(tmp_path, test_fraction=0.3)
    assert sorted((*splits.train.names, *splits.test.names))[3] == "cat/images/9.png"
    assert splits.train.class_names == ("cat", "dog")
    assert "files in the folder that are not images, left out: 1" in splits.notes
    assert "folders of the folder without images, left out: empty" in splits.notes


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_name_that_is_no_text_is_refused_with_its_bytes(tmp_path: Path) -> None:
    write_image_folder(tmp_path)
    (tmp_path / "dog").rename(tmp_path / os.fsdecode(b"caf\xe9"))
    with pytest.raises(ValueError, match=r"expected names in UTF-8, got b'caf\\xe9/0\.png'; rename"):
        load(tmp_path)


def test_a_corrupt_image_is_named(tmp_path: Path) -> None:
    write_image_folder(tmp_path)
    path = tmp_path / "dog" / "1.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"dog/1\.png cannot be read as an image"):
        load(tmp_path)


def test_mixed_sizes_want_resize(tmp_path: Path) -> None:
    write_image_folder(tmp_path)
    write_image(tmp_path / "dog" / "1.png", pixels(9, 8, 3))
    with pytest.raises(ValueError, match=r"cat/0\.png has 6 × 6 pixels and dog/1\.png has 8 × 9; give resize=SIZE"):
        load(tmp_path)
    splits = load(tmp_path, resize=5)
    assert splits.train.inputs.shape[1:] == (3, 5, 5)
    assert any("resized to 5 × 5" in note for note in splits.notes)


def test_a_test_class_that_training_lacks_is_an_error(tmp_path: Path) -> None:
    write_image_folder(tmp_path / "train")
    write_image_folder(tmp_path / "test", ("cat", "elk"))
    with pytest.raises(ValueError, match=r"unknown label 'elk' of test/elk/0\.png \(test\); known: cat, dog"):
        load(tmp_path)


def test_the_order_in_which_files_were_made_does_not_matter(tmp_path: Path) -> None:
    places = [(label, row) for label in ("cat", "dog") for row in range(3)]
    for folder, order in (("a", places), ("b", places[::-1])):
        for label, row in order:
            write_image(tmp_path / folder / label / f"{row}.png", pixels(6, 6, 3, seed=10 * (label == "dog") + row))
    a, b = (load(tmp_path / name) for name in "ab")
    assert (a.train.fingerprint, a.train.names) == (b.train.fingerprint, b.train.names)
