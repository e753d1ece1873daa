import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.sample_files import encode, pixels
from lcmat.data.pixels import ImageStack, resize_images, to_images


def decode(*images: bytes, resize: int | None = None) -> np.ndarray:
    stack = ImageStack(len(images), resize=resize)
    for row, image in enumerate(images):
        stack.add(image, f"row {row}")
    return stack.finish()


def test_grey_images_have_one_channel() -> None:
    images = pixels(3, 5, 4)
    assert np.array_equal(decode(*(encode(image) for image in images)), images[:, None])


def test_rgb_images_have_three_channels() -> None:
    images = pixels(2, 5, 4, 3)
    assert np.array_equal(decode(*(encode(image) for image in images)), images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_coloured_image_gives_all_three_channels(order: tuple[int, int]) -> None:
    both = [pixels(5, 5), pixels(5, 5, 3)]
    stacked = decode(*(encode(both[i]) for i in order))
    expected = [np.repeat(both[0][None], 3, axis=0), both[1].transpose(2, 0, 1)]
    assert np.array_equal(stacked, np.stack([expected[i] for i in order]))


def test_transparent_pixels_show_white_and_that_is_said() -> None:
    image = pixels(4, 4, 4)
    image[..., 3] = 255
    image[0, 0] = (10, 20, 30, 0)
    stack = ImageStack(1)
    stack.add(encode(image), "a")
    assert stack.finish()[0, :, 0, 0].tolist() == [255, 255, 255]
    assert np.array_equal(stack.finish()[0, :, 1:], image[1:, :, :3].transpose(2, 0, 1))
    assert stack.notes() == ("1 images with transparent pixels were laid on white",)


def test_an_opaque_alpha_channel_is_dropped_without_a_word() -> None:
    image = pixels(4, 4, 4)
    image[..., 3] = 255
    stack = ImageStack(1)
    stack.add(encode(image), "a")
    assert np.array_equal(stack.finish()[0], image[..., :3].transpose(2, 0, 1))
    assert stack.notes() == ()


def test_grey_with_alpha_stays_grey() -> None:
    image = np.stack([pixels(4, 4), np.full((4, 4), 255, np.uint8)], axis=-1)
    assert np.array_equal(decode(encode(image))[0], image[None, ..., 0])


def test_palettes_are_looked_up() -> None:
    colours = np.array([[255, 0, 0], [0, 0, 255]], np.uint8)
    image = colours[pixels(4, 4) % 2]
    assert np.array_equal(decode(encode(image, mode="P"))[0], image.transpose(2, 0, 1))


def test_a_palette_without_colour_is_grey() -> None:
    grey = (pixels(4, 4) // 128) * 255
    assert np.array_equal(decode(encode(grey.astype(np.uint8), mode="P")), grey[None, None])


def test_sixteen_bits_are_scaled_to_eight() -> None:
    deep = np.array([[0, 257, 65_535], [128 * 257, 100, 65_400]], np.uint16)
    stack = ImageStack(1)
    stack.add(encode(deep), "a")
    assert stack.finish()[0, 0].tolist() == [[0, 1, 255], [128, 0, 254]]
    assert "16 bits" in stack.notes()[0]


def test_black_and_white_is_grey() -> None:
    image = ((pixels(4, 4) // 128) * 255).astype(np.uint8)
    assert np.array_equal(decode(encode(image, mode="1")), image[None, None])


def test_cmyk_becomes_rgb() -> None:
    image = np.full((8, 8, 3), (200, 40, 90), np.uint8)
    decoded = decode(encode(image, "JPEG", "CMYK"))
    assert decoded.shape == (1, 3, 8, 8)
    assert np.abs(decoded[0].astype(int) - image.transpose(2, 0, 1)).max() < 8


def test_the_orientation_mark_is_applied() -> None:
    image = Image.fromarray(pixels(4, 6, 3))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    file = io.BytesIO()
    image.save(file, "PNG", exif=exif)
    assert np.array_equal(decode(file.getvalue())[0], np.asarray(image)[::-1, ::-1].transpose(2, 0, 1))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_truncated_image_is_named(kind: str) -> None:
    content = encode(pixels(32, 32, 3), kind)
    with pytest.raises(ValueError, match=r"row 0 cannot be read as an image"):
        decode(content[: len(content) // 2])


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("no image")
    with pytest.raises(ValueError, match=r"b/a\.png cannot be read as an image \(of no known format\)"):
        ImageStack(1).add(path, "b/a.png")


def test_floating_point_pixels_are_refused() -> None:
    with pytest.raises(ValueError, match="floating-point"):
        decode(encode(np.zeros((3, 3), np.float32), "TIFF"))


def test_mixed_sizes_name_two_examples_and_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"row 0 has 4 × 5 pixels and row 1 has 7 × 6; give resize=SIZE"):
        decode(encode(pixels(5, 4)), encode(pixels(6, 7)))


def test_resize_takes_the_middle_square() -> None:
    image = np.zeros((10, 30), np.uint8)
    image[:, 10:20] = 200
    resized = decode(encode(image), encode(pixels(7, 7)), resize=5)
    assert resized.shape == (2, 1, 5, 5)
    assert resized[0].min() > 180  # the black sides are cut off, but for what the filter sees of them


def test_a_size_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2 images of 10000000 × 10000000 pixels take at least 200,000.0 GB"):
        ImageStack(2, resize=10**7)


@pytest.mark.parametrize("resize", [0, -3, True, 2.5])
def test_an_impossible_size_is_refused(resize: int) -> None:
    with pytest.raises(ValueError, match="number of pixels"):
        ImageStack(1, resize=resize)


def test_no_images_are_refused() -> None:
    with pytest.raises(ValueError, match="the data is empty"):
        ImageStack(0).finish()


@pytest.mark.parametrize(
    ("shape", "channels_last"), [((5, 6, 7), False), ((5, 6, 7, 3), True), ((5, 3, 6, 7), False), ((5, 6, 7, 1), True)]
)
def test_arrays_of_every_layout(shape: tuple[int, ...], channels_last: bool) -> None:
    array = pixels(*shape)
    expected = array[:, None] if len(shape) == 3 else array.transpose(0, 3, 1, 2) if channels_last else array
    assert np.array_equal(to_images(array, layout="any", where="x"), expected)
    assert np.array_equal(to_images(expected / np.float32(255), layout="any", where="x"), expected)
    assert np.array_equal(to_images(expected.astype(np.int64), layout="any", where="x"), expected)


def test_arrays_with_alpha_are_laid_on_white() -> None:
    array = np.array([[[[10, 20, 30, 0], [10, 20, 30, 255]]] * 2], np.uint8)
    assert to_images(array, layout="any", where="x")[0, :, 0].T.tolist() == [[255, 255, 255], [10, 20, 30]]


@pytest.mark.parametrize("shape", [(2, 3, 5, 3), (2, 5, 6, 7)])
def test_unclear_channels_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cannot tell the channels of x"):
        to_images(pixels(*shape), layout="any", where="x")


@pytest.mark.parametrize(
    "array",
    [
        np.full((1, 2, 2), 1.5),
        np.full((1, 2, 2), -0.1),
        np.full((1, 2, 2), np.nan),
        np.full((1, 2, 2), 256),
        np.full((1, 2, 2), -1),
    ],
)
def test_values_out_of_range_are_refused(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected x as bytes"):
        to_images(array, layout="any", where="x")


def test_text_and_odd_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="floats in"):
        to_images(np.full((1, 2, 2), "a"), layout="any", where="x")
    with pytest.raises(ValueError, match=r"of shape \[n, d\] for features"):
        to_images(pixels(2, 2, 2, 2, 2), layout="any", where="x")
    with pytest.raises(ValueError, match="1, 3 or 4 channels"):
        to_images(pixels(2, 2, 4, 4), layout="channels first", where="x")


def test_arrays_are_resized_as_pictures_are() -> None:
    images = pixels(3, 3, 8, 10)
    resized, notes = resize_images(images, 4)
    assert np.array_equal(resized, decode(*(encode(image.transpose(1, 2, 0)) for image in images), resize=4))
    assert "4 × 4" in notes[0]
    assert resize_images(images, None) == (images, ())
