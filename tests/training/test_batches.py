"""Batches: what a step is fed with, resident or streamed."""

import pytest
import torch
from torch import Tensor, nn

from lcmat import augment
from lcmat.seeding import generator
from lcmat.training.batches import Batches
from lcmat.training.inputs import Normaliser, batch_bounds, inference_batch_size, input_layout
from lcmat.types import Data, FeatureData
from samples import digits_like, vectors

CPU = torch.device("cpu")


def batches(data: Data, *, augmented: bool = False, resident: bool = True, weights: Tensor | None = None) -> Batches:
    return Batches(
        data,
        weights,
        normalise=Normaliser(data, torch.float32, CPU),
        largest=16,
        augmented=augmented,
        generator=generator(0),
        device=CPU,
        resident=resident,
    )


@pytest.mark.parametrize("resident", [True, False])
def test_staged_rows_come_out_normalised_with_their_labels_and_weights(resident: bool) -> None:
    data = digits_like(channels=3)
    weights = torch.rand(60, generator=generator(4))
    made = batches(data, resident=resident, weights=weights)
    order = torch.randperm(60, generator=generator(1))
    made.begin(order)
    expected = (data.images / 255 - torch.tensor(data.mean)[:, None, None]) / torch.tensor(data.std)[:, None, None]
    for start, stop in batch_bounds(60, 16):
        made.stage(start, stop)
        inputs, labels, found = made.take(stop - start)
        rows = order[start:stop]
        torch.testing.assert_close(inputs, expected[rows], atol=1e-5, rtol=1e-5)
        assert torch.equal(labels, data.labels[rows])
        assert found is not None
        assert torch.equal(found, weights[rows])


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("size", [8, 16])
def test_images_are_cropped_by_an_eighth_and_flipped_where_that_keeps_the_label(flip: bool, size: int) -> None:
    data = digits_like(size=size, flip=flip)
    made = batches(data, augmented=True)
    made.begin(torch.arange(60))
    made.stage(0, 16)
    draws = generator(0)
    expected = augment.random_crop(data.images[:16], padding=size // 8, generator=draws)
    if flip:
        expected = augment.random_flip(expected, generator=draws)
    assert torch.equal(made.take(16)[0], Normaliser(data, torch.float32, CPU)(expected))
    plain = batches(data)
    plain.begin(torch.arange(60))
    plain.stage(0, 16)
    assert torch.equal(plain.take(16)[0], Normaliser(data, torch.float32, CPU)(data.images[:16]))


def test_feature_vectors_are_never_augmented() -> None:
    data = vectors()
    made = batches(data, augmented=True)
    made.begin(torch.arange(50))
    made.stage(0, 16)
    standardised = made.take(16)[0]
    everything = Normaliser(data, torch.float32, CPU)(data.features)
    assert torch.equal(standardised, everything[:16])
    torch.testing.assert_close(everything.mean(0), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(everything.std(0, correction=0), torch.ones(5), atol=1e-5, rtol=0)


def test_stored_samples_are_not_changed() -> None:
    data = FeatureData(torch.randn(4, 2, generator=generator(0)), torch.arange(4), tuple("abcd"))
    before = data.features.clone()
    Normaliser(data, torch.float32, CPU)(data.features)
    assert torch.equal(data.features, before)


@pytest.mark.parametrize(("n", "size"), [(1, 4), (4, 4), (5, 4), (6, 4), (9, 4), (3, 1), (3, 100), (2, 1)])
def test_bounds_cover_every_row_once(n: int, size: int) -> None:
    bounds = batch_bounds(n, size)
    assert [row for start, stop in bounds for row in range(start, stop)] == list(range(n))
    assert all(stop - start > 1 for start, stop in bounds) or n == 1 or size == 1


def test_the_layout_suits_the_network() -> None:
    images = digits_like()
    assert input_layout(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), images) is torch.channels_last
    assert input_layout(nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(2, 2)), images) is torch.contiguous_format
    assert input_layout(nn.Linear(5, 3), vectors()) is torch.contiguous_format


def test_inference_batches_shrink_with_the_samples() -> None:
    assert inference_batch_size(digits_like(), CPU, None) == 2048
    assert inference_batch_size(digits_like(4, size=224, channels=3), CPU, None) == 16
    assert inference_batch_size(digits_like(), CPU, 7) == 7
