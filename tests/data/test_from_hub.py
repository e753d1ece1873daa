import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

from data.sample_files import encode, pixels, write_image
from lcmat.data import load
from lcmat.selection import select
from lcmat.types import FeatureData, Signals

IMAGES = pixels(6, 5, 4, 3)
LABELS = [1, 0, 1, 0, 1, 0]


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("datasets", reason="needs the datasets library: pip install lcmat[hub]")


@pytest.fixture
def pictures(datasets: Any) -> Any:
    features = datasets.Features({"picture": datasets.Image(), "kind": datasets.ClassLabel(names=["zebra", "ant"])})
    columns = {"picture": [Picture.fromarray(image) for image in IMAGES], "kind": LABELS}
    return datasets.Dataset.from_dict(columns, features=features)


def check(splits: Any, rows: Iterator[int] | range | list[int]) -> None:
    assert splits.train.class_names == ("zebra", "ant")
    assert np.array_equal(splits.train.inputs.numpy(), IMAGES[list(rows)].transpose(0, 3, 1, 2))
    assert splits.train.labels.tolist() == [LABELS[row] for row in rows]


def test_a_dictionary_of_parts(datasets: Any, pictures: Any) -> None:
    splits = load(datasets.DatasetDict(train=pictures, validation=pictures.select([3]), extra=pictures))
    check(splits, range(6))
    assert splits.test.names == ("test:row 0",)
    assert splits.test.labels.tolist() == [0]
    assert "left out: extra" in splits.notes


def test_a_pair_and_a_single_one(pictures: Any) -> None:
    check(load((pictures, pictures)), range(6))
    splits = load(pictures)
    assert (len(splits.train), len(splits.test)) == (4, 2)


def test_a_subset_of_what_is_left_finds_its_rows_in_the_whole(pictures: Any) -> None:
    splits = load(pictures, test_fraction=0.4)
    assert any("source_rows" in note for note in splits.notes)
    rows = splits.source_rows([3, 1])
    assert rows != [3, 1]
    assert [pictures.select(rows)[i]["kind"] for i in range(2)] == splits.train.labels[[3, 1]].tolist()
    found = np.stack([np.asarray(pictures[row]["picture"]).transpose(2, 0, 1) for row in rows])
    assert np.array_equal(found, splits.train.inputs[[3, 1]].numpy())
    whole = load((pictures, pictures))
    assert whole.source_rows([3, 1]) == [3, 1]
    assert not any("source_rows" in note for note in whole.notes)


def test_a_subset_indexes_the_data_set_that_it_was_chosen_from(pictures: Any) -> None:
    train = load((pictures, pictures)).train
    chosen = select(Signals(features=train.inputs.flatten(1), labels=train.labels), "k-center", count=3)
    assert pictures.select(chosen)["kind"][:] == chosen.apply(train).labels.tolist()
    assert pictures.select(chosen)["picture"][0] == pictures[chosen[0]]["picture"]


def test_chosen_and_shuffled_rows_are_those_that_are_read(pictures: Any) -> None:
    order = [4, 1, 0]
    check(load((pictures.select(order), pictures)), order)


def test_images_given_by_their_paths_are_opened(datasets: Any, tmp_path: Path) -> None:
    paths = [str(write_image(tmp_path / f"{row}.png", image)) for row, image in enumerate(IMAGES)]
    data = datasets.Dataset.from_dict({"image": paths, "label": LABELS}).cast_column("image", datasets.Image())
    splits = load((data, data))
    assert np.array_equal(splits.train.inputs.numpy(), IMAGES.transpose(0, 3, 1, 2))
    assert list(splits.train.names) == paths


def test_columns_can_be_named_and_resized(datasets: Any) -> None:
    encoded = [encode(image) for image in IMAGES]
    data = datasets.Dataset.from_dict({"a": encoded, "b": encoded, "u": LABELS, "v": LABELS})
    assert load(data, image="b", label="v", resize=3).train.inputs.shape[1:] == (3, 3, 3)
    with pytest.raises(ValueError, match="more than one image column"):
        load(data, label="v")


def test_columns_of_numbers_and_vectors_are_features(datasets: Any) -> None:
    data = datasets.Dataset.from_dict(
        {"vector": [[0.5, float(row)] for row in range(6)], "x": [1] * 6, "label": LABELS}
    )
    splits = load((data, data))
    assert isinstance(splits.train, FeatureData)
    assert splits.train.features[3].tolist() == [0.5, 3.0, 1.0]


def test_unlabelled_rows_are_refused(datasets: Any, pictures: Any) -> None:
    unlabelled = pictures.select([0]).map(lambda row: {"kind": -1}, load_from_cache_file=False)
    with pytest.raises(ValueError, match=r"unknown label -1 of test:row 0 \(test\); known: 0, 1"):
        load((pictures, unlabelled))


def test_a_dictionary_without_training_data_is_refused(datasets: Any, pictures: Any) -> None:
    with pytest.raises(ValueError, match="expected a part called train, got a, b"):
        load(datasets.DatasetDict(a=pictures, b=pictures))
    assert len(load(datasets.DatasetDict(a=pictures)).train) == 4


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("owner/name", ("owner/name", None)),
        ("owner/name:plain", ("owner/name", "plain")),
        ("hub:mnist", ("mnist", None)),
        ("hub:owner/name:plain", ("owner/name", "plain")),
    ],
)
def test_ids_are_asked_for(
    datasets: Any, pictures: Any, monkeypatch: pytest.MonkeyPatch, source: str, asked: tuple[str, str | None]
) -> None:
    calls = []

    def load_dataset(*arguments: str | None) -> Any:
        calls.append(arguments)
        return datasets.DatasetDict(train=pictures, test=pictures)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    splits = load(source)
    check(splits, range(6))
    assert calls == [asked]
    assert splits.name == source


def test_an_id_that_the_hub_does_not_know(datasets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*_: object) -> None:
        raise FileNotFoundError("no such data set on the hub")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(ValueError, match=r"'owner/name' is no path, and the hub did not give .*: no such data set"):
        load("owner/name")


def test_an_id_without_the_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"there is no path 'owner/name'; .* pip install lcmat\[hub\]"):
        load("owner/name")
