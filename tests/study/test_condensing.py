"""Condensation in run folders: begun, killed, resumed, joined, evaluated, exported."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch
from PIL import Image
from torch import Tensor

import lcmat
from cli.commands import write_images, write_table
from lcmat.condensation.checkpoint import Checkpoint
from lcmat.condensation.views import View
from lcmat.study.condensed import evaluate_condensed, join_runs, open_condensed
from lcmat.study.condensing import Request, Work, read_data, run_condensation, with_net
from lcmat.study.export import export_synthetic
from lcmat.types import Splits, SyntheticSet

NET = "convnet:width=4,depth=2"
SMALL = {"real_batch": 8, "network_steps": 2, "period": 20}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images.npz")


def request(source: Path, **changes: Any) -> Request:
    given: dict[str, Any] = {"source": str(source), "options": SMALL, "per_class": 1, "net": NET}
    return Request(**{**given, **changes})


def run(asked: Request, folder: Path, **changes: Any) -> SyntheticSet:
    work: dict[str, Any] = {"steps": 40, "quick": 2, "watch_every": 20, "device": "cpu"}
    return run_condensation(asked, read_data(asked), folder, Work(**{**work, **changes}))


def test_a_run_leaves_set_pictures_and_progress(source: Path, tmp_path: Path) -> None:
    said: list[str] = []
    tiny = run(request(source), tmp_path / "run", say=said.append)
    assert torch.equal(open_condensed(tmp_path / "run").inputs, tiny.inputs)
    assert tiny.inputs.dtype == torch.uint8
    with Image.open(tmp_path / "run" / "grid.png") as grid:
        assert grid.size[1] == 2 * 50 + 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "progress.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [20, 40]
    assert all(line["loss"] > 0 and 0 <= line["accuracy"] <= 1 and line["seconds"] > 0 for line in lines)
    assert said[0].startswith("step 20: loss ")
    assert "% on the test set after 2 epochs (one training)" in said[0]


def test_a_killed_run_is_resumed_to_the_same_set(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoint, "interval", 0.0)

    def kill(done: int, total: int, loss: float) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    asked, folder = request(source), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(asked, folder, progress=kill)
    with pytest.raises(ValueError, match="was interrupted"):
        open_condensed(folder)
    with pytest.raises(ValueError, match="holds this condensation, interrupted; give --resume"):
        run(asked, folder)
    with pytest.raises(ValueError, match="holds another condensation: its seed is 0, asked for is 1"):
        run(request(source, seed=1), folder, resume=True)
    resumed = run(asked, folder, resume=True)
    assert torch.equal(resumed.inputs, run(asked, tmp_path / "whole").inputs)
    longer = run(asked, folder, resume=True, steps=60)
    assert torch.equal(longer.inputs, run(asked, tmp_path / "longer", steps=60).inputs)


def test_other_folders_are_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="not empty and no condensation"):
        run(request(source), tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        run(request(source), tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_diverged_run_keeps_its_last_good_set(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(_: View, synthetic: View) -> Tensor:
        return synthetic.inputs.flatten(1).sum(1) * torch.nan

    monkeypatch.setattr("lcmat.condensation.objectives.gradients_by_square", spoilt)
    with pytest.raises(ValueError, match="diverged"):
        run(request(source), tmp_path / "run")
    kept = SyntheticSet.load(tmp_path / "run" / "synthetic")
    assert kept.recipe["steps"] == 0
    with pytest.raises(ValueError, match="was interrupted"):
        open_condensed(tmp_path / "run")


def test_shards_are_joined(source: Path, tmp_path: Path) -> None:
    for name, classes in (("a", (1,)), ("b", (0,))):
        run(request(source, classes=classes), tmp_path / name, quick=0)
    joined = join_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    assert joined.labels.tolist() == [0, 1]
    assert len(open_condensed(tmp_path / "both")) == 2
    with pytest.raises(ValueError, match="exists already"):
        join_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "both")


def test_sets_of_runs_are_evaluated_beside_random_ones(source: Path, tmp_path: Path) -> None:
    for method in ("random", "dm"):
        asked = request(source, method=method, options={} if method == "random" else {"real_batch": 8})
        run(asked, tmp_path / method, quick=0)
    folders = [tmp_path / "random", tmp_path / "dm"]
    report, page = evaluate_condensed(folders, tmp_path / "out", seeds=2, nets=[NET], epochs=3, device="cpu")
    assert {row.name for row in report.rows} == {"random", "dm", "uniform"}
    assert report.protocol["augmentation"].startswith("DSA for each image (color, crop")
    assert report.protocol["labels"] == "hard"
    assert "random, dm on" in page.read_text()


@pytest.fixture(scope="module")
def sets(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, SyntheticSet]:
    table = write_table(tmp_path_factory.mktemp("data") / "table.npz")
    images, rows = (lcmat.load(str(path)).train for path in (source, table))
    return {
        "images": lcmat.condense(images, "random", per_class=3, factor=2, device="cpu"),
        "soft": lcmat.condense(images, "random", per_class=3, labels="soft", net=NET, device="cpu"),
        "rows": lcmat.condense(rows, "random", per_class=4, device="cpu"),
    }


def test_an_exported_image_folder_is_read_again(sets: dict[str, SyntheticSet], tmp_path: Path) -> None:
    export_synthetic(sets["images"], "folder", tmp_path / "kept")
    back: Splits = lcmat.load(str(tmp_path / "kept"), test_fraction=0.25)
    assert len(back.train) + len(back.test) == 2 * 3 * 4
    pixels = {image.numpy().tobytes() for image in torch.cat([back.train.inputs, back.test.inputs])}
    assert pixels == {image.numpy().tobytes() for image in sets["images"].data().inputs}


@pytest.mark.parametrize("name", ["images", "rows"])
def test_exported_parquet_is_read_again(name: str, sets: dict[str, SyntheticSet], tmp_path: Path) -> None:
    path = export_synthetic(sets[name], "parquet", tmp_path / "kept.parquet")
    back = lcmat.load(str(path), test_fraction=0.25)
    data = sets[name].data()
    assert len(back.train) + len(back.test) == len(data)
    assert back.train.class_names == data.class_names
    assert back.train.inputs.shape[1:] == data.inputs.shape[1:]


def test_soft_labels_are_exported_or_the_loss_is_refused(sets: dict[str, SyntheticSet], tmp_path: Path) -> None:
    path = export_synthetic(sets["soft"], "parquet", tmp_path / "soft.parquet")
    column = torch.tensor(pyarrow.parquet.read_table(path)["soft"].to_pylist())
    torch.testing.assert_close(column, sets["soft"].soft)
    with pytest.raises(ValueError, match="soft labels of this set would be lost"):
        export_synthetic(sets["soft"], "folder", tmp_path / "kept")


def test_wrong_exports_are_refused(sets: dict[str, SyntheticSet], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="to parquet or folder, got 'csv'"):
        export_synthetic(sets["images"], "csv", tmp_path / "a")
    with pytest.raises(ValueError, match="only images make an image folder"):
        export_synthetic(sets["rows"], "folder", tmp_path / "b")
    with pytest.raises(ValueError, match="exists already"):
        export_synthetic(sets["rows"], "parquet", tmp_path)


def test_requests_are_checked_before_data_is_read() -> None:
    with pytest.raises(ValueError, match="unknown condenser"):
        Request(source="nowhere", method="dmm")
    with pytest.raises(TypeError, match="unknown option of dm"):
        Request(source="nowhere", method="dm", options={"rate": 1})
    with pytest.raises(ValueError, match="per_class of at least 1, got 0"):
        Request(source="nowhere", per_class=0)


def test_the_network_suits_the_data(source: Path) -> None:
    asked = request(source, net="")
    assert with_net(asked, read_data(asked)).net == "convnet:width=32"
