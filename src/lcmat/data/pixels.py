"""Pictures of every kind -> uint8 arrays with one size and one number of channels."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from lcmat import runtime

Bytes: TypeAlias = NDArray[np.uint8]

# What Pillow raises for files that are damaged, one way or another, or absurdly large.
_UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    NotImplementedError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


class ImageStack:
    """Images taken one by one into one array `[n, channels, height, width]`, so that no second copy is ever held.

    Grey images give one channel, unless one of the others has colour: then all have three. Transparent pixels show
    white. 16-bit values are scaled to 8 bits. Orientation marks of cameras are applied.

    Decoding runs on one thread: with a second one, JPEGs of 32 pixels took 1.7 times as long and JPEGs of 64 to 500
    pixels 0.9 to 1.1 times as long.
    """

    def __init__(self, n: int, *, resize: int | None = None) -> None:
        if resize is not None and (isinstance(resize, bool) or not isinstance(resize, int) or resize < 1):
            raise ValueError(f"expected resize to be a number of pixels from 1 up, got {resize!r}")
        if resize is not None and n * resize**2 > (free := runtime.free_memory(torch.device("cpu"))):
            raise ValueError(
                f"{n:,} images of {resize} × {resize} pixels take at least {n * resize**2 / 1e9:,.1f} GB of memory, "
                f"and {free / 1e9:,.1f} GB are free; resize to fewer pixels"
            )
        self.names: list[str] = []
        self._n = n
        self._resize = resize
        self._images: Bytes | None = None
        self._transparent = 0
        self._deep = 0

    def add(self, image: bytes | Path | Image.Image, name: str) -> None:
        """Decode an image (encoded bytes, a file, or Pillow's) and keep it under a name.

        Raises:
            ValueError: when it cannot be decoded, or differs in size from those before; the message names it.
        """
        try:
            if isinstance(image, Image.Image):
                pixels = self._pixels(image)
            else:
                with Image.open(io.BytesIO(image) if isinstance(image, bytes) else image) as opened:
                    pixels = self._pixels(opened)
        except _UNREADABLE as error:
            why = "of no known format" if isinstance(error, UnidentifiedImageError) else error
            raise ValueError(f"{name} cannot be read as an image ({why}); repair or remove it") from None
        self._keep(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1), name)

    def add_array(self, image: Bytes, name: str) -> None:
        """Keep an image given as a uint8 array `[channels, height, width]` with one or three channels."""
        if self._resize is not None:
            self.add(Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)), name)
        else:
            self._keep(image, name)

    def finish(self) -> Bytes:
        """The images taken so far.

        Raises:
            ValueError: when there are none.
        """
        if self._images is None:
            raise ValueError("expected at least one image, got none: the data is empty")
        return self._images[: len(self.names)]

    def notes(self) -> tuple[str, ...]:
        """What was done to the images beside decoding them."""
        notes = []
        if self._transparent:
            notes.append(f"{self._transparent:,} images with transparent pixels were laid on white")
        if self._deep:
            notes.append(f"{self._deep:,} images of 16 bits were scaled to 8 bits")
        if self._resize is not None:
            side = self._resize
            notes.append(f"images were resized to {side} × {side}: the middle square, scaled (bicubic)")
        return tuple(notes)

    def _keep(self, pixels: Bytes, name: str) -> None:
        if self._images is None:
            self._images = np.empty((self._n, *pixels.shape), np.uint8)
        if pixels.shape[1:] != self._images.shape[2:]:
            raise mixed_sizes(self.names[0], self._images.shape, name, pixels.shape)
        if len(pixels) > self._images.shape[1]:
            self._images = np.repeat(self._images, len(pixels), axis=1)
        self._images[len(self.names)] = pixels  # one channel fills three
        self.names.append(name)

    def _pixels(self, image: Image.Image) -> Bytes:
        """An image as `[height, width]` or `[height, width, 3]`."""
        if "exif" in image.info:
            image = ImageOps.exif_transpose(image)
        plain = self._plain(image)
        if self._resize is not None:
            plain = ImageOps.fit(plain, (self._resize, self._resize), method=Image.Resampling.BICUBIC)
        return np.asarray(plain)

    def _plain(self, image: Image.Image) -> Image.Image:
        """The image in mode L or RGB."""
        if image.mode in {"LA", "La", "PA", "RGBA", "RGBa"} or "transparency" in image.info:
            return self._opaque(image)
        if image.mode in {"L", "RGB"}:
            return image
        if image.mode == "1":
            return image.convert("L")
        if image.mode.startswith("I"):
            return self._eight_bits(image)
        if image.mode == "F":
            raise ValueError("its pixels are floating-point numbers; give such images as an .npz")
        return _grey_if_colourless(image.convert("RGB")) if image.mode == "P" else image.convert("RGB")

    def _opaque(self, image: Image.Image) -> Image.Image:
        grey = image.mode in {"1", "L", "LA", "La"}
        palette = image.mode in {"P", "PA"}
        layered = image.convert("RGBA")
        if layered.getchannel("A").getextrema()[0] != 255:
            self._transparent += 1
            layered = Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered)
        opaque = layered.convert("RGB")
        if grey:
            return opaque.getchannel(0)
        return _grey_if_colourless(opaque) if palette else opaque

    def _eight_bits(self, image: Image.Image) -> Image.Image:
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 65_535:
            raise ValueError(f"its pixels go from {values.min()} to {values.max()}, which is beyond 16 bits")
        self._deep += 1
        return Image.fromarray(((values * 255 + 32_767) // 65_535).astype(np.uint8))


def to_images(array: NDArray[Any], *, layout: Literal["any", "channels first"], where: str) -> Bytes:
    """Images given as numbers -> uint8 `[n, channels, height, width]` with one or three channels.

    Args:
        array: `[n, h, w]`, `[n, h, w, c]` or `[n, c, h, w]`; bytes, whole numbers from 0 to 255, or floats in [0, 1].
        layout: which of the last two it is, where that is known.
        where: what to call the array in an error.

    Raises:
        ValueError: for another shape, or values out of range.
    """
    if array.ndim not in {3, 4}:
        shapes = "[n, d] for features, [n, h, w], [n, h, w, c] or [n, c, h, w] for images"
        raise ValueError(f"expected {where} of shape {shapes}, got {list(array.shape)}")
    if array.ndim == 3:
        array = array[:, None]
    elif layout == "any":
        first, last = array.shape[1] in {1, 3, 4}, array.shape[3] in {1, 3, 4}
        if first == last:
            reason = "the second and the last axis both" if first else "no axis, by having 1, 3 or 4,"
            raise ValueError(f"cannot tell the channels of {where}: {reason} could be them in {list(array.shape)}")
        array = array.transpose(0, 3, 1, 2) if last else array
    if array.shape[1] not in {1, 3, 4} or 0 in array.shape[2:]:
        raise ValueError(f"expected images with 1, 3 or 4 channels in {where}, got shape {list(array.shape)}")
    pixels = _to_bytes(array, where)
    return np.ascontiguousarray(pixels if pixels.shape[1] < 4 else _lay_on_white(pixels))


def resize_images(images: Bytes, side: int | None) -> tuple[Bytes, tuple[str, ...]]:
    """Images `[n, channels, height, width]` brought to `side × side` pixels, if asked for, and notes."""
    if side is None:
        return images, ()
    stack = ImageStack(len(images), resize=side)
    for row, image in enumerate(images):
        stack.add_array(image, f"row {row}")
    return stack.finish(), stack.notes()


def mixed_sizes(first: str, first_shape: tuple[int, ...], second: str, second_shape: tuple[int, ...]) -> ValueError:
    """The error for images that differ in size, with an example of each."""
    (height, width), (other_height, other_width) = first_shape[-2:], second_shape[-2:]
    return ValueError(
        f"expected images of one size, but {first} has {width} × {height} pixels and {second} has "
        f"{other_width} × {other_height}; give resize=SIZE to bring all to SIZE × SIZE"
    )


def _to_bytes(array: NDArray[Any], where: str) -> Bytes:
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "iufb":
        raise ValueError(f"expected images of bytes or of floats in [0, 1] in {where}, got {array.dtype}")
    if array.size == 0:
        return array.astype(np.uint8)
    lowest, highest = float(array.min()), float(array.max())
    limit = 1 if array.dtype.kind in "fb" else 255
    if not (lowest >= 0 and highest <= limit):  # NaN fails both
        raise ValueError(
            f"expected {where} as bytes, whole numbers from 0 to 255 or floats in [0, 1], got {array.dtype} from "
            f"{lowest:g} to {highest:g}; give the images before any normalisation"
        )
    return (np.rint(array * 255) if limit == 1 else array).astype(np.uint8)


def _lay_on_white(pixels: Bytes) -> Bytes:
    alpha = pixels[:, 3:].astype(np.uint16)
    colour = pixels[:, :3]
    if bool((alpha == 255).all()):
        return colour
    return ((colour * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def _grey_if_colourless(image: Image.Image) -> Image.Image:
    """A palette says nothing of colour, so its pixels are asked; a file in RGB is taken at its word."""
    red, green, blue = (np.asarray(channel) for channel in image.split())
    return image.getchannel(0) if np.array_equal(red, green) and np.array_equal(red, blue) else image
