from collections.abc import Callable
from typing import Any

import pytest
import torch

from lcmat.types import FeatureData, ImageData, Splits


def make_images(n: int = 4, **changes: Any) -> ImageData:
    values: dict[str, Any] = {
        "images": torch.arange(n * 12).to(torch.uint8).reshape(n, 3, 2, 2),
        "labels": torch.arange(n) % 2,
        "class_names": ("cat", "dog"),
        **changes,
    }
    return ImageData(**values)


def make_features(n: int = 4, **changes: Any) -> FeatureData:
    values: dict[str, Any] = {
        "features": torch.tensor([[0.0, 7.0], [2.0, 7.0]]).repeat(n // 2, 1),
        "labels": torch.arange(n) % 2,
        "class_names": ("no", "yes"),
        **changes,
    }
    return FeatureData(**values)


def test_statistics_are_of_values_between_0_and_1() -> None:
    data = make_images()
    values = data.images.double() / 255
    assert data.mean == pytest.approx(values.mean((0, 2, 3)).tolist(), abs=1e-12)
    assert data.std == pytest.approx(values.std((0, 2, 3), correction=0).tolist(), abs=1e-12)


def test_constant_columns_are_divided_by_one() -> None:
    assert make_features().std == (1.0, 1.0)
    assert make_features().mean == (1.0, 7.0)
    assert make_images(images=torch.full((4, 1, 2, 2), 9, dtype=torch.uint8)).std == (1.0,)


@pytest.mark.parametrize("make", [make_images, make_features])
def test_rows_taken_keep_names_and_statistics(make: Callable[..., ImageData | FeatureData]) -> None:
    data = make(names=("a", "b", "c", "d"), known_fingerprint="known")
    part = data.take(torch.tensor([3, 0]))
    assert part.names == ("d", "a")
    assert part.labels.tolist() == [1, 0]
    assert torch.equal(part.inputs, data.inputs[[3, 0]])
    assert (part.mean, part.std) == (data.mean, data.std)
    assert data.fingerprint == "known"
    assert part.fingerprint != "known"


@pytest.mark.parametrize("make", [make_images, make_features])
def test_fingerprint_sees_contents_labels_and_class_order(make: Callable[..., ImageData | FeatureData]) -> None:
    data = make()
    swapped = make(class_names=data.class_names[::-1])
    relabelled = make(labels=1 - data.labels)
    changed = data.take(torch.tensor([1, 0, 2, 3]))
    assert len({item.fingerprint for item in (data, swapped, relabelled, changed)}) == 4
    assert make().fingerprint == data.fingerprint
    assert len(data) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": torch.zeros(4, 3, 2, 2)}, r"expected uint8 images of shape .*, got torch.float32"),
        ({"images": torch.zeros(4, 3, 2, dtype=torch.uint8)}, r"of shape \[4, 3, 2\]"),
        ({"images": torch.zeros(0, 3, 2, 2, dtype=torch.uint8)}, "the data is empty"),
        ({"labels": torch.zeros(3, dtype=torch.int64)}, "expected one label for each of the 4 samples, got 3"),
        ({"labels": torch.zeros(4)}, r"expected an int64 label vector, got torch.float32"),
        ({"labels": torch.tensor([0, 1, 2, 0])}, "expected labels from 0 to 1, one for each class name, got 0 to 2"),
        ({"labels": torch.tensor([0, -1, 0, 0])}, "got -1 to 0"),
        ({"names": ("a",)}, "expected a name for each of the 4 samples or none at all, got 1"),
    ],
)
def test_impossible_images_cannot_be_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_images(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": torch.zeros(4, 2, dtype=torch.float64)}, r"expected float32 features of shape \[n, d\]"),
        ({"features": torch.zeros(4)}, r"of shape \[4\]"),
        (
            {"features": torch.tensor([[0.0], [1.0], [float("nan")], [float("inf")]])},
            "NaN or infinity in 2 of 4 rows, the first at row 2",
        ),
    ],
)
def test_impossible_features_cannot_be_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_features(**changes)


def test_summary_says_what_was_found() -> None:
    images = make_images()
    text = Splits(images, images, "pets", ("a split was made",)).summary()
    assert "pets: 4 train, 4 test, 3 × 2 × 2 images" in text
    assert "2 classes: cat, dog" in text
    assert "note: a split was made" in text
    features = make_features(class_names=tuple(map(str, range(12))))
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …" in Splits(features, features, "table").summary()


def test_data_are_shown_in_a_line_not_number_by_number() -> None:
    images, features = make_images(), make_features()
    assert repr(images) == "ImageData: 4 images of 3 × 2 × 2, 2 classes"
    assert repr(features).startswith("FeatureData: ")
    assert "tensor" not in repr(features)
    assert repr(Splits(images, images, "pets")) == f"Splits: {Splits(images, images, 'pets').summary()}"


def test_rows_of_the_source_are_found_for_a_subset() -> None:
    images = make_images()
    splits = Splits(images, images, "pets", rows=torch.tensor([0, 2, 5, 9]))
    assert splits.source_rows([3, 0]) == [9, 0]
    assert splits.source_rows([]) == []
    with pytest.raises(ValueError, match="from 0 to 3, got 1 to 4"):
        splits.source_rows([1, 4])
    with pytest.raises(ValueError, match="the source's rows of this part are not known"):
        Splits(images, images, "pets").source_rows([0])
