import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lcmat
from data.sample_files import pixels, write_image_folder
from lcmat.data import load, sources
from lcmat.types import FeatureData, ImageData


def save_npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_every_kind_of_source_has_a_line() -> None:
    kinds = [
        "digits",
        "wine",
        "breast-cancer",
        "npz",
        "cifar",
        "idx",
        "folder",
        "parquet",
        "csv",
        "datasets",
        "torch",
        "hub",
    ]
    assert list(sources()) == kinds
    assert all(line and "\n" not in line for line in sources().values())


def test_the_public_names_are_these() -> None:
    assert lcmat.load is load
    assert lcmat.sources is sources


def test_features_and_images_come_as_what_they_are(tmp_path: Path) -> None:
    labels = np.array([0, 1] * 5)
    images = load(save_npz(tmp_path / "a.npz", x=pixels(10, 4, 4), y=labels))
    vectors = load(save_npz(tmp_path / "b.npz", x=np.random.default_rng(0).normal(size=(10, 3)), y=labels))
    assert isinstance(images.train, ImageData)
    assert isinstance(vectors.train, FeatureData)
    assert images.train.images.dtype == torch.uint8


def test_what_was_found_is_summed_up(tmp_path: Path) -> None:
    splits = load(write_image_folder(tmp_path / "pets", per_class=10))
    assert splits.name == "pets"
    summary = splits.summary()
    assert "pets: 16 train, 4 test, 3 × 6 × 6 images" in summary
    assert "2 classes: cat, dog" in summary
    assert "note: no test part was found: 4 of 20 samples were held out, stratified, seed 0" in summary


def test_what_was_found_is_said_unless_it_is_to_be_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_image_folder(tmp_path / "pets", per_class=10)
    splits = load(path)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"{splits.summary()}\n")
    load(path, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_a_test_part_of_its_own_is_used(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "x": pixels(6, 4, 4),
        "y": np.arange(6) % 2,
        "x_test": pixels(4, 4, 4, seed=1),
        "y_test": np.arange(4) % 2,
    }
    splits = load(save_npz(tmp_path / "a.npz", **arrays), test_fraction=0.5)
    assert torch.equal(splits.test.inputs[:, 0], torch.from_numpy(arrays["x_test"]))
    assert (splits.test.mean, splits.test.std) == (splits.train.mean, splits.train.std)
    assert not any("held out" in note for note in splits.notes)


def test_fraction_and_seed_of_the_split_are_heeded(tmp_path: Path) -> None:
    path = save_npz(tmp_path / "a.npz", x=pixels(40, 4, 4), y=np.arange(40) % 2)
    names = [load(path, test_fraction=0.3, seed=seed).test.names for seed in (0, 0, 1)]
    assert len(names[0]) == 12
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize(("flip", "expected"), [(None, False), (True, True), (False, False)])
def test_flip_overrides_what_is_assumed(tmp_path: Path, flip: bool | None, expected: bool) -> None:
    path = save_npz(tmp_path / "a.npz", x=pixels(20, 4, 4), y=np.arange(20) % 10)
    splits = load(path, flip=flip)
    assert isinstance(splits.train, ImageData)
    assert isinstance(splits.test, ImageData)
    assert splits.train.flip is splits.test.flip is expected


def test_a_path_may_be_text_or_a_path_and_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_npz(tmp_path / "a.npz", x=pixels(20, 4, 4), y=np.arange(20) % 2)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load(path).train.fingerprint == load(str(path)).train.fingerprint == load("~/a.npz").train.fingerprint


def test_an_empty_text_is_not_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_image_folder(tmp_path)
    with pytest.raises(ValueError, match="expected a path or a name, got an empty text"):
        load("")


@pytest.mark.parametrize("source", ["nowhere.parquet", "no/table.CSV", "no/such/path", Path("nowhere")])
def test_a_path_that_does_not_exist_is_said_to(source: str | Path) -> None:
    with pytest.raises(
        ValueError, match=r"there is no file or folder '(nowhere|no/).*that there are: digits, .*, hub$"
    ):
        load(source)


def test_a_path_below_a_folder_that_exists_is_no_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(ValueError, match="there is no file or folder 'runs/a'"):
        load("runs/a")


@pytest.mark.parametrize("source", [3, None, [1, 2], {"train": 1}, np.zeros((4, 2))])
def test_an_object_of_no_known_kind_lists_the_known_ones(source: object) -> None:
    with pytest.raises(ValueError, match=rf"got {type(source).__name__}\. Known: digits: .*torch: .*hub: "):
        load(source)


def test_a_folder_or_file_of_no_known_kind_says_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with nothing"):
        load(tmp_path)
    (tmp_path / "notes.txt").write_text("no data")
    with pytest.raises(ValueError, match=r"with notes\.txt\. Known: "):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"notes\.txt\. Known: "):
        load(tmp_path / "notes.txt")


def test_an_option_that_a_source_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unknown option of npz 'label'; valid: resize"):
        load(save_npz(tmp_path / "a.npz", x=pixels(4, 4, 4), y=np.arange(4) % 2), label="y")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, float("nan")])
def test_an_impossible_test_fraction_is_refused(tmp_path: Path, fraction: float) -> None:
    with pytest.raises(ValueError, match="test_fraction between 0 and 1"):
        load("digits", test_fraction=fraction)


needs_scikit_learn = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn: pip install lcmat[demo]"
)


@needs_scikit_learn
def test_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()  # the embedded data set goes first
    splits = load("digits")
    assert isinstance(splits.train, ImageData)
    assert (len(splits.train), len(splits.test)) == (1438, 359)
    assert splits.train.images.shape[1:] == (1, 8, 8)
    assert (int(splits.train.images.min()), int(splits.train.images.max())) == (0, 255)
    assert splits.train.class_names == tuple("0123456789")
    assert splits.train.flip is False
    assert splits.train.names[0].startswith("digits:row ")


@pytest.mark.parametrize(("name", "rows", "features", "classes"), [("wine", 178, 13, 3), ("breast-cancer", 569, 30, 2)])
def test_embedded_tables(name: str, rows: int, features: int, classes: int) -> None:
    splits = load(name)
    assert isinstance(splits.train, FeatureData)
    assert len(splits.train) + len(splits.test) == rows
    assert splits.train.features.shape[1] == features
    assert len(splits.train.class_names) == classes
    assert splits.train.names[0].startswith(f"{name}:row ")
    assert splits.name == name


def test_digits_without_scikit_learn_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match=r"pip install lcmat\[demo\]"):
        load("digits")


def test_cifar10_of_jpegs(lcmat_data: Path) -> None:
    splits = load(lcmat_data / "cifar10-jpeg" / "test.parquet", cache=False)
    assert (len(splits.train), len(splits.test)) == (8000, 2000)
    assert splits.train.inputs.shape[1:] == (3, 32, 32)
    assert splits.train.class_names[:2] == ("airplane", "automobile")
    assert torch.bincount(splits.test.labels).tolist() == [200] * 10
    classes = [splits.train.class_names[label] for label in splits.train.labels.tolist()]
    assert [name.split("/")[0] for name in splits.train.names] == classes
    assert splits.train.mean == pytest.approx((0.491, 0.482, 0.447), abs=0.01)
