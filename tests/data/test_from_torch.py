from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from data.sample_files import pixels
from lcmat.data import load
from lcmat.types import FeatureData, ImageData

IMAGES = pixels(8, 5, 4, 3)
LABELS = [1, 0] * 4


class Items(Dataset[Any]):
    """A data set of whatever it is given; it stops by no means when iterated over."""

    def __init__(self, inputs: Any, labels: Any = LABELS, classes: list[str] | None = None) -> None:
        self.inputs, self.labels = inputs, labels
        if classes:
            self.classes = classes

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> Any:
        return self.inputs[row % len(self)], self.labels[row % len(self)]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(zip(IMAGES, LABELS, strict=True))


def pair(inputs: Any) -> tuple[Items, Items]:
    return Items(inputs), Items(inputs)


CHANNELS_FIRST = torch.from_numpy(IMAGES).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    "inputs",
    [
        [Image.fromarray(image) for image in IMAGES],
        CHANNELS_FIRST,
        CHANNELS_FIRST / 255,
        list(IMAGES),
        list(IMAGES.astype(np.float64) / 255),
    ],
    ids=["pillow", "byte tensor", "float tensor", "array", "float array"],
)
def test_images_of_every_kind(inputs: Any) -> None:
    splits = load(pair(inputs))
    assert isinstance(splits.train, ImageData)
    assert torch.equal(splits.train.images, CHANNELS_FIRST)
    assert torch.equal(splits.test.inputs, CHANNELS_FIRST)
    assert splits.train.labels.tolist() == LABELS
    assert (splits.train.names[2], splits.test.names[2]) == ("train:row 2", "test:row 2")


@pytest.mark.parametrize("labels", [[torch.tensor(x) for x in LABELS], np.array(LABELS), [str(x) for x in LABELS]])
def test_labels_of_every_kind(labels: Any) -> None:
    splits = load(Items(IMAGES, labels))
    assert splits.train.class_names == ("0", "1")
    assert len(splits.train) == 6


def test_grey_and_mixed_images() -> None:
    assert load(Items(list(pixels(8, 5, 4)))).train.inputs.shape[1] == 1
    mixed = [*IMAGES[:4], *(Image.fromarray(image) for image in pixels(4, 5, 4))]
    assert load(Items(mixed)).train.inputs.shape[1] == 3


def test_vectors_are_features() -> None:
    features = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(features, torch.tensor(LABELS))
    splits = load((data, data))
    assert isinstance(splits.train, FeatureData)
    assert torch.equal(splits.train.features, features)


def test_the_classes_of_a_data_set_are_heeded_through_a_subset() -> None:
    data = Items(IMAGES, classes=["zebra", "ant"])
    for source in (data, Subset(data, range(6))):
        splits = load(source)
        assert splits.train.class_names == ("zebra", "ant")
    assert load(Items(IMAGES, classes=["one"])).train.class_names == ("0", "1")


def test_streams_are_read_once() -> None:
    splits = load(Stream())
    assert len(splits.train) + len(splits.test) == 8
    assert splits.train.inputs.shape[1:] == (3, 5, 4)


def test_resize() -> None:
    assert load(Items(CHANNELS_FIRST), resize=3).train.inputs.shape[1:] == (3, 3, 3)
    with pytest.raises(ValueError, match="resize= is for images"):
        load(Items(torch.zeros(8, 3)), resize=3)


def test_random_transforms_are_noticed() -> None:
    class Noisy(Items):
        def __getitem__(self, row: int) -> Any:
            self.labels = self.labels
            self.calls = getattr(self, "calls", 0) + 1
            return self.inputs[row] + self.calls, self.labels[row]

    with pytest.raises(ValueError, match="row 0 of the train data comes out differently each time"):
        load(Noisy(torch.zeros(8, 3)))


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (IMAGES, [None] * 8, "the label of train:row 0 as a number or text, got NoneType"),
        (IMAGES, [[1, 2]] * 8, "as a number or text, got list"),
        (IMAGES, [], "the train data is empty"),
        (["path.png"] * 8, LABELS, r"train:row 0 as a picture of Pillow, .* got str"),
        (torch.zeros(8), LABELS, r"got ndarray of shape \[\]"),
        (torch.full((8, 1, 4, 4), -0.5), LABELS, "train:row 0 as bytes, .* before any normalisation"),
        (torch.zeros(8, 5, 4, 4), LABELS, r"1, 3 or 4 channels in train:row 0, got shape \[1, 5, 4, 4\]"),
        ([torch.zeros(3)] * 4 + [torch.zeros(2)] * 4, LABELS, "items of one kind and length"),
        ([torch.zeros(3)] * 4 + [torch.zeros(1, 2, 2)] * 4, LABELS, "items of one kind and length"),
        ([torch.zeros(1, 3, 3)] * 4 + [torch.zeros(1, 2, 2)] * 4, LABELS, "train:row 0 has 3 × 3 .*:row 4 has 2 × 2"),
        ([torch.tensor([1.0, float("nan")])] * 8, LABELS, "expected finite features"),
    ],
)
def test_unusable_items_are_refused(inputs: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(Items(inputs, labels))


class Dictionaries(Items):
    def __getitem__(self, row: int) -> Any:
        image, label = super().__getitem__(row)
        return {"id": row, "image": image, "label": label} if self.labels[0] else {"Label": label, "image": image}


def test_dictionaries_of_an_input_and_its_label_are_pairs() -> None:
    splits = load((Dictionaries(list(IMAGES), [0, 1] * 4), Dictionaries(CHANNELS_FIRST, [0, 1] * 4)))
    assert torch.equal(splits.train.inputs, CHANNELS_FIRST)
    assert torch.equal(splits.test.inputs, CHANNELS_FIRST)
    assert splits.train.labels.tolist() == [0, 1] * 4
    with pytest.raises(ValueError, match=r"train:row 0 as a pair .* got a dictionary of id, image, label; let the"):
        load(Dictionaries(IMAGES))


def test_a_type_that_numpy_does_not_have() -> None:
    inputs = torch.rand(8, 3, generator=torch.Generator().manual_seed(0))
    splits = load(pair(inputs.bfloat16()))
    assert torch.equal(splits.train.inputs, inputs.bfloat16().float())


def test_items_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"train:row 0 as a pair \(image or features, label\), got tuple"):
        load(TensorDataset(torch.zeros(4, 3)))
    with pytest.raises(ValueError, match="expected a data set of a known kind, got list"):
        load([Items(IMAGES)])
