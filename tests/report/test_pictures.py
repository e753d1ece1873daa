"""Strips of pictures, of any number of channels and any size."""

import io

import pytest
import torch
from PIL import Image

from lcmat.report.pictures import TILE, strip_png, tile_bytes


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (4, "RGB")])
def test_small_images_keep_their_pixels(channels: int, mode: str) -> None:
    images = torch.randint(0, 256, (3, channels, 5, 7), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    content, width, height = strip_png(images)
    assert (width, height) == (3 * 7 + 2, 5)
    tile = Image.open(io.BytesIO(content)).crop((8, 0, 15, 5)).convert(mode)
    expected = images[1, 0] if mode == "L" else images[1, :3].permute(1, 2, 0)
    assert tile.tobytes() == expected.contiguous().numpy().tobytes()


def test_large_images_shrink_to_a_tile() -> None:
    images = torch.zeros(2, 3, 100, 200, dtype=torch.uint8)
    _, width, height = strip_png(images)
    assert (width, height) == (2 * TILE + 1, TILE // 2)


def test_the_bytes_of_a_tile_are_those_of_its_pixels() -> None:
    noise = torch.randint(0, 256, (8, 3, TILE, TILE), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    assert 4 / 3 * 3 * TILE**2 <= tile_bytes(noise) < 1.5 * 4 / 3 * 3 * TILE**2
    assert tile_bytes(torch.zeros_like(noise)) < 100
