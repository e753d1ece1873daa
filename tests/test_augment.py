"""Augmentation against brute force."""

import numpy as np
import pytest
import torch

from lcmat import augment
from lcmat.seeding import generator


def batch(n: int = 40, channels: int = 3, height: int = 6, width: int = 5) -> torch.Tensor:
    return torch.randint(0, 256, (n, channels, height, width), generator=generator(0), dtype=torch.uint8)


def windows(image: torch.Tensor, padding: int) -> dict[tuple[int, int], np.ndarray]:
    """Every window of the image's size in the image padded by NumPy's reflection."""
    height, width = image.shape[-2:]
    padded = np.pad(image.numpy(), ((0, 0), (padding, padding), (padding, padding)), mode="reflect")
    span = range(2 * padding + 1)
    return {(row, column): padded[:, row : row + height, column : column + width] for row in span for column in span}


@pytest.mark.parametrize("padding", [1, 2, 4])
def test_crop_is_a_window_of_the_reflected_image(padding: int) -> None:
    images = batch()
    cropped = augment.random_crop(images, padding=padding, generator=generator(1))
    assert cropped.dtype == torch.uint8
    places = []
    for image, crop in zip(images, cropped, strict=True):
        found = [place for place, window in windows(image, padding).items() if np.array_equal(window, crop.numpy())]
        assert found
        places.append(found[0])
    assert len(set(places)) > 2 * padding + 1, "the images of a batch are shifted one by one, in both directions"


def test_crop_is_uniform_over_the_shifts() -> None:
    image = torch.arange(36, dtype=torch.uint8).reshape(1, 1, 6, 6).expand(9000, 1, 6, 6)
    cropped = augment.random_crop(image, padding=1, generator=generator(0))
    places = {window.tobytes(): place for place, window in windows(image[0], 1).items()}
    counts = np.bincount(
        [3 * places[crop.numpy().tobytes()][0] + places[crop.numpy().tobytes()][1] for crop in cropped]
    )
    assert counts.min() > 850
    assert counts.max() < 1150


def test_no_padding_changes_nothing_and_too_much_is_refused() -> None:
    images = batch()
    assert augment.random_crop(images, padding=0, generator=generator(0)) is images
    with pytest.raises(ValueError, match="padding from 0 to 4"):
        augment.random_crop(images, padding=5, generator=generator(0))


def test_flip_mirrors_about_half_of_the_images() -> None:
    images = batch(400)
    flipped = augment.random_flip(images, generator=generator(2))
    mirrored = torch.from_numpy(images.numpy()[..., ::-1].copy())
    chosen = (flipped == mirrored).flatten(1).all(1)
    assert torch.equal(flipped[~chosen], images[~chosen])
    assert 160 < int(chosen.sum()) < 240


def test_the_same_generator_gives_the_same_images_and_the_global_one_is_left_alone() -> None:
    images = batch()
    before = torch.get_rng_state()
    first, second = (
        augment.random_flip(augment.random_crop(images, padding=2, generator=draws), generator=draws)
        for draws in (generator(3), generator(3))
    )
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
