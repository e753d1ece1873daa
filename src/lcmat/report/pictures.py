"""Strips of small pictures as PNG, inside the page itself."""

import base64
import io

from PIL import Image
from torch import Tensor

TILE = 32  # pixels of the longer side; larger images are made smaller, smaller ones are kept and enlarged on screen
GAP = 1  # pixels between two tiles


def fit(image: Tensor) -> Image.Image:
    """One image as Pillow has it, its longer side at most `TILE` pixels.

    Args:
        image: uint8 `[channels, height, width]` with 1 (grey), 3 (colour) or 4 (with alpha) channels; of any other
            number the first one is shown.
    """
    channels = image.shape[0]
    if channels in {3, 4}:
        picture = Image.fromarray(image.permute(1, 2, 0).contiguous().cpu().numpy()).convert("RGB")
    else:
        picture = Image.fromarray(image[0].contiguous().cpu().numpy())
    picture.thumbnail((TILE, TILE), Image.Resampling.LANCZOS)
    return picture


def strip_png(images: Tensor) -> tuple[bytes, int, int]:
    """Images side by side: the PNG with its width and height.

    Args:
        images: uint8 `[k, channels, height, width]`, k ≥ 1.

    Example:
        >>> import torch
        >>> content, width, height = strip_png(torch.zeros(3, 1, 8, 8, dtype=torch.uint8))
        >>> content[1:4], width, height
        (b'PNG', 26, 8)
    """
    tiles = [fit(image) for image in images]
    width, height = tiles[0].size
    # Between the tiles lies nothing, so that the page shines through in its light and in its dark scheme.
    sheet = Image.new("RGBA", (len(tiles) * (width + GAP) - GAP, height), (0, 0, 0, 0))
    for place, tile in enumerate(tiles):
        sheet.paste(tile.convert("RGBA"), (place * (width + GAP), 0))
    file = io.BytesIO()
    sheet.save(file, "PNG")
    return file.getvalue(), *sheet.size


def data_uri(png: bytes) -> str:
    """The PNG as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def tile_bytes(images: Tensor) -> int:
    """About how many bytes of the page one of these images takes: the mean over all of them, which are encoded for it.

    Args:
        images: uint8 `[k, channels, height, width]`, k ≥ 1.
    """
    return -(-len(data_uri(strip_png(images)[0])) // len(images))


def first_of_class(labels: Tensor, index: int, most: int) -> Tensor:
    """Positions of the first samples of a class, in the order given.

    Example:
        >>> import torch
        >>> first_of_class(torch.tensor([1, 0, 1, 1]), 1, 2).tolist()
        [0, 2]
    """
    return (labels == index).nonzero().flatten()[:most]
