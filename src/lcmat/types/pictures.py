"""One image as Pillow and as PNG have it."""

import io

from PIL import Image
from torch import Tensor


def as_picture(image: Tensor) -> Image.Image:
    """A picture of one image: grey for one channel, colour for three or four; of any other number the first.

    Args:
        image: uint8 `[channels, height, width]`.

    Example:
        >>> import torch
        >>> as_picture(torch.zeros(1, 4, 6, dtype=torch.uint8)).size
        (6, 4)
    """
    if image.shape[0] in {3, 4}:
        return Image.fromarray(image.permute(1, 2, 0).contiguous().cpu().numpy())
    return Image.fromarray(image[0].contiguous().cpu().numpy())


def png_bytes(picture: Image.Image) -> bytes:
    """The picture as a PNG file."""
    content = io.BytesIO()
    picture.save(content, format="PNG")
    return content.getvalue()
