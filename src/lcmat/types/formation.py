"""Several small images in one stored image: the multi-formation of Kim et al., ICML 2022 (Efficient Condensation)."""

from torch import Tensor
from torch.nn import functional


def check_factor(factor: int, shape: tuple[int, ...]) -> None:
    """Refuse a factor that the shape of a sample does not allow.

    Raises:
        ValueError: for a factor below 1, one that does not divide an image's sides, or one above 1 for no image.
    """
    if factor < 1:
        raise ValueError(f"expected a factor of at least 1, got {factor}")
    if factor > 1 and len(shape) != 3:
        raise ValueError(f"several samples in one (factor={factor}) need images; use factor=1 for feature vectors")
    if factor > 1 and (shape[1] % factor or shape[2] % factor):
        raise ValueError(f"expected a factor that divides the images' sides, {shape[1]} × {shape[2]}, got {factor}")


def decode(stored: Tensor, factor: int) -> Tensor:
    """The f × f smaller images in each stored one, brought to full size by bilinear interpolation.

    Args:
        stored: `[m, channels, height, width]`, floating-point; anything when the factor is 1.
        factor: f.

    Returns:
        `[m·f², channels, height, width]`; the images of one stored image stand together, row by row.

    Example:
        >>> import torch
        >>> decode(torch.arange(16.0).reshape(1, 1, 4, 4), 2)[3, 0].tolist()[0]
        [10.0, 10.25, 10.75, 11.0]
    """
    if factor == 1:
        return stored
    m, channels, height, width = stored.shape
    parts = stored.reshape(m, channels, factor, height // factor, factor, width // factor)
    parts = parts.permute(0, 2, 4, 1, 3, 5).reshape(-1, channels, height // factor, width // factor)
    return functional.interpolate(parts, size=(height, width), mode="bilinear", align_corners=False)


def encode(images: Tensor, factor: int) -> Tensor:
    """Stored images made of f × f images each, shrunk by averaging; `decode` brings them back, less sharp.

    Args:
        images: `[m·f², channels, height, width]`, floating-point; anything when the factor is 1.
        factor: f.
    """
    if factor == 1:
        return images
    _, channels, height, width = images.shape
    small = functional.avg_pool2d(images, factor)
    tiles = small.reshape(-1, factor, factor, channels, height // factor, width // factor)
    return tiles.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, height, width)
