import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import lcmat as library
from cli.commands import Lcmat
from lcmat import files
from lcmat.types import FeatureData, ImageData


def test_show_says_what_was_kept_and_how(lcmat: Lcmat, table_run: Path) -> None:
    outcome = lcmat("show", table_run)
    assert outcome.status == 0
    assert "lcmat-s (rho=0.1, subdimensions=100, temperature=1.0) on table" in outcome.out
    assert "kept 6 of 60 samples (10.00%)" in outcome.out
    assert "0: 2, 1: 2, 2: 2" in outcome.out


def test_a_folder_that_is_no_run_is_wrong_use(lcmat: Lcmat, tmp_path: Path) -> None:
    for arguments in (("show", tmp_path), ("export", tmp_path), ("evaluate", tmp_path)):
        outcome = lcmat(*arguments)
        assert outcome.status == 2
        assert "expected a run folder, as `lcmat select` writes it" in outcome.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "other"}, "does not describe a run of lcmat"),
        ({"kind": "lcmat run", "format": 9}, "of a format that this version of lcmat does not know"),
        ({"kind": "lcmat run", "format": 1}, "does not describe a whole run"),
        ({"kind": "lcmat run", "format": 1, "settings": {}, "data": {}}, "does not describe a whole run"),
    ],
)
def test_damaged_runs_are_refused(lcmat: Lcmat, tmp_path: Path, content: object, message: str) -> None:
    files.write_json(tmp_path / "run.json", content)
    assert message in lcmat("show", tmp_path).err


def test_seconds_that_are_no_numbers_are_refused_as_such(lcmat: Lcmat, table_run: Path, tmp_path: Path) -> None:
    content = files.read_json(table_run / "run.json")
    files.write_json(tmp_path / "run.json", {**content, "seconds": {**content["seconds"], "load": None}})
    outcome = lcmat("show", tmp_path)
    assert outcome.status == 2
    assert "does not describe a whole run: its data or seconds are incomplete" in outcome.err


def test_csv_has_a_row_for_each_kept_sample(lcmat: Lcmat, image_run: Path, images: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept.csv"
    assert lcmat("export", image_run, "--subset", "0.1", "--out", target).out.strip() == str(target)
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    subset, data = library.load_subset(image_run / "subsets" / "0.1"), library.load(images).train
    assert [int(row["index"]) for row in rows] == list(subset)
    assert [row["class"] for row in rows] == [data.class_names[data.labels[i]] for i in subset]
    assert [row["name"] for row in rows] == [data.names[i] for i in subset]
    assert [float(row["weight"]) for row in rows] == pytest.approx(subset.weights.tolist())
    assert [int(row["order"]) for row in rows] == list(range(4))


def test_parquet_of_images_loads_back(lcmat: Lcmat, image_run: Path, images: Path, tmp_path: Path) -> None:
    assert (
        lcmat(
            "export", image_run, "--subset", "0.2", "--to", "parquet", "--out", tmp_path / "k" / "train.parquet"
        ).status
        == 0
    )
    assert (
        lcmat(
            "export", image_run, "--subset", "0.1", "--to", "parquet", "--out", tmp_path / "k" / "test.parquet"
        ).status
        == 0
    )
    back, data = library.load(tmp_path / "k").train, library.load(images).train
    kept = library.load_subset(image_run / "subsets" / "0.2").apply(data)
    assert isinstance(back, ImageData)
    assert torch.equal(back.inputs, kept.inputs)
    assert torch.equal(back.labels, kept.labels)
    assert (back.class_names, back.names) == (kept.class_names, kept.names)


def test_parquet_of_features_loads_back(lcmat: Lcmat, table_run: Path, table: Path, tmp_path: Path) -> None:
    for subset, name in (("0.2", "train"), ("0.1", "test")):
        assert (
            lcmat(
                "export", table_run, "--subset", subset, "--to", "parquet", "--out", tmp_path / f"{name}.parquet"
            ).status
            == 0
        )
    back, data = library.load(tmp_path).train, library.load(table).train
    kept = library.load_subset(table_run / "subsets" / "0.2").apply(data)
    assert isinstance(back, FeatureData)
    assert torch.equal(back.inputs, kept.inputs)
    assert torch.equal(back.labels, kept.labels)


def test_exports_of_a_table_keep_its_columns(lcmat: Lcmat, tmp_path: Path) -> None:
    source = tmp_path / "plants.csv"
    lines = [f"{size},{size / 4},{'oak' if size % 2 else 'elm'}" for size in range(20)]
    source.write_text("\n".join(["size,weight,kind", *lines]) + "\n", encoding="utf-8")
    run = tmp_path / "run"
    assert lcmat("select", source, "--method", "uniform", "--count", "4", "--out", run).status == 0
    assert lcmat("export", run).status == lcmat("export", run, "--to", "parquet").status == 0
    with (run / "exports" / "count-4.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["index", "class", "name", "lcmat_weight", "order", "size", "weight"]
    for row in rows:
        assert row["name"] == f"plants.csv:row {int(float(row['size']))}"
        assert float(row["weight"]) == float(row["size"]) / 4
    back = library.load(run / "exports" / "count-4.parquet").train
    assert isinstance(back, FeatureData)
    assert back.feature_names == ("size", "weight")
    assert set(back.features[:, 0].tolist()) <= {float(row["size"]) for row in rows}


def test_parquet_is_what_the_datasets_library_reads(lcmat: Lcmat, image_run: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    target = tmp_path / "kept.parquet"
    assert lcmat("export", image_run, "--subset", "0.1", "--to", "parquet", "--out", target).status == 0
    found = datasets.Dataset.from_parquet(str(target), cache_dir=str(tmp_path / "cache"))
    assert found.features["label"].names == ["0", "1"]
    assert found[0]["image"].size == (8, 8)


def test_folder_has_a_picture_for_each_kept_sample(lcmat: Lcmat, image_run: Path, images: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    assert lcmat("export", image_run, "--subset", "0.1", "--to", "folder", "--out", target).status == 0
    assert sorted(path.name for path in target.iterdir()) == ["0", "1"]
    data = library.load(images).train
    assert isinstance(data, ImageData)
    expected = {
        data.images[i].permute(1, 2, 0).numpy().tobytes() for i in library.load_subset(image_run / "subsets" / "0.1")
    }
    assert {np.asarray(Image.open(path)).tobytes() for path in target.rglob("*.png")} == expected
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_keeps_classes_apart_whatever_they_are_called(lcmat: Lcmat, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "signs.npz", x=pixels, y=["+", "−", "train", "Train"] * 6)
    arguments = ["--method", "uniform", "--fraction", "1", "--out", tmp_path / "run"]
    assert lcmat("select", tmp_path / "signs.npz", *arguments).status == 0
    assert lcmat("export", tmp_path / "run", "--to", "folder", "--out", tmp_path / "kept").status == 0
    data, back = library.load(tmp_path / "signs.npz").train, library.load(tmp_path / "kept", test_fraction=0.25)
    assert len(back.train.class_names) == 4
    assert len(back.train) + len(back.test) == len(data) == len(list((tmp_path / "kept").rglob("*.png")))
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["Train", "_", "_-3", "train-2"]


def test_pictures_of_an_archive_are_named_by_its_rows(lcmat: Lcmat, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "signs.npz", x=pixels, y=np.arange(24) % 3)
    assert lcmat("select", tmp_path / "signs.npz", "--method", "uniform", "--out", tmp_path / "run").status == 0
    assert lcmat("export", tmp_path / "run", "--to", "folder", "--out", tmp_path / "kept").status == 0
    [kept] = library.load_subset(tmp_path / "run" / "subsets" / "0.01")
    [row] = library.load(tmp_path / "signs.npz").source_rows([kept])
    [picture] = (tmp_path / "kept").rglob("*.png")
    assert picture.name == f"signs.npz-x-row-{row}.png"
    assert np.array_equal(np.asarray(Image.open(picture)), pixels[row])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "zip"], "--to takes csv, parquet, folder, got 'zip'"),
        ([], "holds several subsets; name one with --subset: 0.1, 0.2"),
        (["--subset", "0.5"], "holds no subset '0.5'; it has 0.1, 0.2"),
    ],
)
def test_wrong_exports_are_refused(lcmat: Lcmat, table_run: Path, arguments: list[str], message: str) -> None:
    outcome = lcmat("export", table_run, *arguments)
    assert outcome.status == 2
    assert message in outcome.err
    assert not (table_run / "exports").exists()


def test_nothing_is_overwritten_and_nothing_half_written(
    lcmat: Lcmat, table_run: Path, image_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = files.write_text(tmp_path / "a.csv", "mine")
    assert "exists already" in lcmat("export", table_run, "--subset", "0.1", "--out", target).err
    assert target.read_text(encoding="utf-8") == "mine"
    assert (
        "only images make an image folder"
        in lcmat("export", table_run, "--subset", "0.1", "--to", "folder", "--out", tmp_path / "b").err
    )

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    failed = lcmat("export", image_run, "--subset", "0.1", "--to", "folder", "--out", tmp_path / "c")
    assert failed.status == 1
    assert failed.err.startswith(f"error: No space left on device: {tmp_path / 'c'}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_data_that_changed_is_refused(lcmat: Lcmat, table: Path, tmp_path: Path) -> None:
    arrays = dict(np.load(table, allow_pickle=False))
    source = tmp_path / "own.npz"
    np.savez(source, **arrays)
    assert lcmat("select", source, "--method", "uniform", "--out", tmp_path / "a").status == 0
    np.savez(source, **{**arrays, "x": arrays["x"] + 1})
    assert "no longer holds the data" in lcmat("export", tmp_path / "a", "--out", tmp_path / "a.csv").err
    outcome = lcmat("select", source, "--method", "uniform", "--out", tmp_path / "a")
    assert outcome.status == 1
    assert "holds a run on other data" in outcome.err
