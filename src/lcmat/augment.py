"""Augmentation as tensor functions: whole batches, on any device, randomness from a generator that is passed in.

Nothing here waits for the device, so that the functions can be part of a captured CUDA graph. `draw` makes the
differentiable augmentation of Zhao and Bilen, ICML 2021 (DSA): drawn once, it can be applied to several batches alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

# Of DSA: how far each operation goes.
BRIGHTNESS, SATURATION, CONTRAST = 1.0, 2.0, 0.5
CROP, CUTOUT = 0.125, 0.5  # shares of an image's side
SCALE, ROTATION = 1.2, 15.0  # a factor, and degrees

OPERATIONS = ("color", "crop", "cutout", "flip", "scale", "rotate")
_NUMBERS = 11  # uniform numbers that one draw takes


def parse_operations(strategy: str, *, flip: bool = True) -> tuple[str, ...]:
    """The operations of a strategy such as 'color_crop_cutout'; none for an empty one.

    Args:
        strategy: operations with '_' between.
        flip: whether a mirrored image keeps its label; else 'flip' is left out.

    Raises:
        ValueError: for an operation that does not exist; the valid ones are listed.

    Example:
        >>> parse_operations("color_crop_flip", flip=False)
        ('color', 'crop')
    """
    names = tuple(filter(None, strategy.split("_")))
    if unknown := [name for name in names if name not in OPERATIONS]:
        raise ValueError(f"expected augmentation of {', '.join(OPERATIONS)}, joined by '_', got {unknown[0]!r}")
    return tuple(name for name in names if flip or name != "flip")


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of the augmentation, to be applied to as many batches as one likes.

    Attributes:
        operations: to be applied.
        numbers: uniform in [0, 1), `[groups, 11]`.
        chosen: whether a group undergoes each operation, bool, `[groups, operations]`; None: all of them.
    """

    operations: tuple[str, ...]
    numbers: Tensor
    chosen: Tensor | None = None

    def __call__(self, images: Tensor) -> Tensor:
        """The images augmented.

        Args:
            images: normalised, so that 0 is the mean colour, `[groups·b, channels, height, width]`; the b images of
                a group stand together and are all treated alike.
        """
        per_group = len(images) // len(self.numbers)
        numbers = self.numbers.to(images.dtype).repeat_interleave(per_group, 0)[:, :, None, None, None]
        for place, name in enumerate(self.operations):
            changed = _CHANGES[name](images, numbers)
            if self.chosen is not None:
                mask = self.chosen[:, place].repeat_interleave(per_group)[:, None, None, None]
                changed = torch.where(mask, changed, images)
            images = changed
        return images

    def take(self, groups: Tensor) -> "Draw":
        """The draw of some groups."""
        return Draw(self.operations, self.numbers[groups], None if self.chosen is None else self.chosen[groups])


def draw(
    operations: Sequence[str], groups: int, *, generator: torch.Generator, device: torch.device, single: bool = False
) -> Draw:
    """Draw the augmentation once.

    Args:
        operations: from `OPERATIONS`.
        groups: how many groups of images are treated each in its own way; as many as images for one draw an image.
        generator: on the images' device.
        device: of the images.
        single: whether each group undergoes one operation, drawn among them, as in DSA, instead of all.

    Example:
        >>> import torch
        >>> from lcmat.seeding import generator
        >>> once = draw(("crop", "cutout"), 1, generator=generator(0, "draw"), device=torch.device("cpu"))
        >>> images = torch.ones(2, 3, 8, 8)
        >>> bool((once(images)[0] == once(images)[1]).all())
        True
    """
    numbers = torch.rand(groups, _NUMBERS, generator=generator, device=device)
    chosen = None
    if single and operations:
        place = torch.randint(len(operations), (groups, 1), generator=generator, device=device)
        chosen = place == torch.arange(len(operations), device=device)
    return Draw(tuple(operations), numbers, chosen)


def cutmix(
    images: Tensor, targets: Tensor, *, probability: float, generator: torch.Generator, batches: int = 1
) -> tuple[Tensor, Tensor]:
    """A box of each image replaced by that of another one, with labels mixed by area: Yun et al., ICCV 2019.

    Args:
        images: `[n, channels, height, width]`.
        targets: distributions over the classes, `[n, C]`.
        probability: that a batch is mixed at all; the box is the same for all its images.
        generator: on the images' device.
        batches: of the same size, standing one behind the other; each is mixed in itself.

    Returns:
        Images and targets of the same shapes.
    """
    height, width = images.shape[2:]
    device, each = images.device, len(images) // batches
    numbers = torch.rand(batches, 4, generator=generator, device=device)
    partners = torch.rand(batches, each, generator=generator, device=device).argsort(1)
    partners = (partners + torch.arange(0, len(images), each, device=device)[:, None]).flatten()
    # λ is uniform, which is Beta(1, 1); a batch that is not mixed gets an empty box.
    side = torch.where(numbers[:, 1] < probability, numbers[:, 0].sqrt() / 2, 0)[:, None]
    rows = (torch.arange(height, device=device) + 0.5) / height - numbers[:, 2:3]
    columns = (torch.arange(width, device=device) + 0.5) / width - numbers[:, 3:4]
    box = (rows.abs() < side)[:, :, None] & (columns.abs() < side)[:, None]
    box = box.repeat_interleave(each, 0)[:, None]
    share = box.to(targets.dtype).mean((1, 2, 3))[:, None]
    mixed = torch.where(box, images[partners], images)
    return mixed, targets * (1 - share) + targets[partners] * share


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


def _color(images: Tensor, numbers: Tensor) -> Tensor:
    """Brightness, saturation (none for one channel) and contrast."""
    images = images + (numbers[:, 0] - 0.5) * BRIGHTNESS
    grey = images.mean(1, keepdim=True)
    images = (images - grey) * (numbers[:, 1] * SATURATION) + grey
    mean = images.mean((1, 2, 3), keepdim=True)
    return (images - mean) * (numbers[:, 2] + CONTRAST) + mean


def _crop(images: Tensor, numbers: Tensor) -> Tensor:
    """A shift by whole pixels, filled with 0."""
    return _shift(_shift(images, numbers[:, 3], 2), numbers[:, 4], 3)


def _shift(images: Tensor, number: Tensor, axis: int) -> Tensor:
    size = images.shape[axis]
    most = int(size * CROP + 0.5)
    shift = (number.reshape(-1, 1) * (2 * most + 1)).floor().long() - most
    source = torch.arange(size, device=images.device) + shift
    shape = [len(images), 1, 1, 1]
    shape[axis] = size
    inside = ((source >= 0) & (source < size)).reshape(shape)
    moved = images.gather(axis, source.clamp(0, size - 1).reshape(shape).expand(images.shape))
    return torch.where(inside, moved, 0)


def _cutout(images: Tensor, numbers: Tensor) -> Tensor:
    """A square of half the side set to 0."""
    inside = [
        (torch.arange(size, device=images.device) - (number.reshape(-1, 1) * size).floor() + size * CUTOUT / 2)
        for size, number in zip(images.shape[2:], (numbers[:, 5], numbers[:, 6]), strict=True)
    ]
    rows, columns = ((part >= 0) & (part < side * CUTOUT) for part, side in zip(inside, images.shape[2:], strict=True))
    return torch.where((rows[:, :, None] & columns[:, None, :])[:, None], 0, images)


def _flip(images: Tensor, numbers: Tensor) -> Tensor:
    return torch.where(numbers[:, 7] < 0.5, images.flip(-1), images)


def _scale(images: Tensor, numbers: Tensor) -> Tensor:
    """Height and width scaled by factors of their own, filled with 0."""
    across, along = (1 / SCALE + numbers[:, place].flatten() * (SCALE - 1 / SCALE) for place in (8, 9))
    zero = torch.zeros_like(across)
    return _resample(images, torch.stack([across, zero, zero, zero, along, zero], 1))


def _rotate(images: Tensor, numbers: Tensor) -> Tensor:
    """A rotation about the centre, filled with 0."""
    angle = torch.deg2rad((numbers[:, 10].flatten() - 0.5) * 2 * ROTATION)
    zero = torch.zeros_like(angle)
    return _resample(images, torch.stack([angle.cos(), -angle.sin(), zero, angle.sin(), angle.cos(), zero], 1))


def _resample(images: Tensor, matrices: Tensor) -> Tensor:
    grid = functional.affine_grid(matrices.reshape(-1, 2, 3), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


_CHANGES = {
    "color": _color,
    "crop": _crop,
    "cutout": _cutout,
    "flip": _flip,
    "scale": _scale,
    "rotate": _rotate,
}
