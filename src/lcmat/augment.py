"""Augmentation as tensor functions: whole batches, on any device, randomness from a generator that is passed in.

Nothing here waits for the device, so that the functions can be part of a captured CUDA graph.
"""

import torch
from torch import Tensor


def random_crop(images: Tensor, *, padding: int, generator: torch.Generator) -> Tensor:
    """A crop of the images' own size at a random place of the image reflected outwards by `padding` pixels.

    Each image is shifted by its own whole number of pixels, uniform in {−padding, …, padding} in both directions.
    The reflection repeats no edge pixel, as in `numpy.pad(mode="reflect")`.

    Args:
        images: `[n, channels, height, width]`, any type.
        padding: pixels, below height and width; 0 gives the images back.
        generator: on the images' device.

    Returns:
        Images of the same shape and type.

    Example:
        >>> import torch
        >>> from lcmat.seeding import generator
        >>> image = torch.arange(16, dtype=torch.uint8).reshape(1, 1, 4, 4)
        >>> random_crop(image, padding=1, generator=generator(0, "crop")).shape
        torch.Size([1, 1, 4, 4])
    """
    n, channels, height, width = images.shape
    if not 0 <= padding < min(height, width):
        raise ValueError(f"expected a padding from 0 to {min(height, width) - 1} for these images, got {padding}")
    if padding == 0:
        return images
    shifts = torch.randint(-padding, padding + 1, (2, n, 1), generator=generator, device=images.device)
    rows = _reflect(torch.arange(height, device=images.device) + shifts[0], height)
    columns = _reflect(torch.arange(width, device=images.device) + shifts[1], width)
    samples = torch.arange(n, device=images.device)[:, None, None, None]
    planes = torch.arange(channels, device=images.device)[:, None, None]
    return images[samples, planes, rows[:, None, :, None], columns[:, None, None, :]]


def random_flip(images: Tensor, *, generator: torch.Generator) -> Tensor:
    """Each image mirrored left to right with probability one half.

    Args:
        images: `[n, channels, height, width]`, any type.
        generator: on the images' device.

    Returns:
        Images of the same shape and type.
    """
    chosen = torch.rand(len(images), 1, 1, 1, generator=generator, device=images.device) < 0.5
    return torch.where(chosen, images.flip(-1), images)


def _reflect(positions: Tensor, size: int) -> Tensor:
    """Positions outside [0, size) folded back at the first and the last pixel."""
    return (size - 1) - ((size - 1) - positions.abs()).abs()
