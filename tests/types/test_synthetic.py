"""The synthetic set: what it refuses, what it keeps, and several images in one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader

from lcmat.seeding import generator
from lcmat.types import FeatureData, ImageData, SyntheticSet
from lcmat.types.formation import decode, encode
from lcmat.types.pictures import as_picture

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"inputs": torch.zeros(6, 1, 4, 4, dtype=torch.float64)}, "float32 or uint8"),
    "shape": ({"inputs": torch.zeros(6, 4, 4)}, "images .* or as float32 vectors"),
    "none": ({"inputs": torch.zeros(0, 1, 4, 4), "labels": torch.zeros(0, dtype=torch.int64)}, "m ≥ 1"),
    "range": ({"inputs": torch.full((6, 1, 4, 4), 1.5)}, r"values in \[0, 1\], got 1.5 to 1.5"),
    "nan": ({"inputs": torch.full((6, 1, 4, 4), torch.nan)}, "finite samples"),
    "labels": ({"labels": torch.zeros(5, dtype=torch.int64)}, "6 int64 labels"),
    "label": ({"labels": torch.full((6,), 3)}, "labels from 0 to 2, got 3 to 3"),
    "factor": ({"factor": 3}, "factor that divides the images' sides"),
    "soft shape": ({"soft": torch.ones(6, 2) / 2, "soft_from": "a"}, r"soft labels of shape \[6, 3\]"),
    "soft sum": ({"soft": torch.ones(6, 3), "soft_from": "a"}, "soft labels as distributions"),
    "soft unsaid": ({"soft": torch.ones(6, 3) / 3}, "soft_from to say"),
    "said but hard": ({"soft_from": "a teacher"}, "soft_from to say"),
    "rows": ({"n": 0}, "n=0"),
}


def pictures(**changes: Any) -> SyntheticSet:
    given: dict[str, Any] = {
        "inputs": torch.rand(6, 1, 4, 4, generator=generator(0, "samples")),
        "labels": torch.tensor([0, 0, 1, 1, 2, 2]),
        "class_names": ("a", "b", "c"),
        "mean": (0.4,),
        "std": (0.2,),
        "method": "dm",
        "options": {"lr": 1.0},
        "seed": 0,
        "n": 60,
        "recipe": {"net": "convnet", "classes": [0, 1, 2], "seconds": 1.0},
    }
    return SyntheticSet(**{**given, **changes})


def rows(**changes: Any) -> SyntheticSet:
    given = {"inputs": torch.randn(6, 5, generator=generator(0)), "mean": (1.0,) * 5, "std": (2.0,) * 5}
    return pictures(**{**given, **changes})


@pytest.mark.parametrize("name", CHANGES)
def test_an_impossible_set_cannot_be_made(name: str) -> None:
    changes, message = CHANGES[name]
    with pytest.raises(ValueError, match=message):
        pictures(**changes)


def test_a_set_is_shown_in_a_line() -> None:
    assert repr(rows()).startswith("SyntheticSet: 6 samples of 5 for ")
    assert "tensor" not in repr(pictures())


@pytest.mark.parametrize("make", [pictures, rows])
@pytest.mark.parametrize("soft", [False, True])
def test_saved_sets_come_back_whole(make: Callable[..., SyntheticSet], soft: bool, tmp_path: Path) -> None:
    changes = {"soft": torch.ones(6, 3) / 3, "soft_from": "a teacher"} if soft else {}
    tiny = make(notes=("as it is",), **changes)
    tiny.save(tmp_path)
    back = SyntheticSet.load(tmp_path)
    assert torch.equal(back.inputs, tiny.inputs)
    assert torch.equal(back.labels, tiny.labels)
    assert (back.soft is None) == (not soft)
    for name in ("class_names", "mean", "std", "options", "notes", "recipe", "label_kind", "factor", "n"):
        assert getattr(back, name) == getattr(tiny, name), name


def test_damaged_and_missing_sets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a saved synthetic"):
        SyntheticSet.load(tmp_path)
    pictures().save(tmp_path)
    [tensors] = tmp_path.glob("*.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match="damaged"):
        SyntheticSet.load(tmp_path)


def test_eight_bits_are_a_quarter_of_the_size_and_lose_half_a_level() -> None:
    tiny = pictures()
    small = tiny.rounded()
    assert small.inputs.dtype == torch.uint8
    assert (small.decoded()[0] - tiny.inputs).abs().max() <= 0.5 / 255 + 1e-6
    assert torch.equal(small.data().inputs, tiny.data().inputs)
    assert rows().rounded().inputs.dtype == torch.float32


def test_data_and_dataset_train_at_once() -> None:
    for tiny in (pictures(factor=2), rows()):
        data = tiny.data()
        assert isinstance(data, ImageData if tiny.are_images else FeatureData)
        assert (data.mean, data.std) == (tiny.mean, tiny.std)
        dataset = tiny.dataset()
        assert len(dataset) == len(data) == 6 * tiny.factor**2
        inputs, labels = next(iter(DataLoader(dataset, batch_size=4)))
        raw = data.inputs[:4].float() / (255 if tiny.are_images else 1)
        torch.testing.assert_close(inputs, (raw - tiny.mean[0]) / tiny.std[0])
        nn.functional.cross_entropy(nn.Linear(inputs[0].numel(), 3)(inputs.flatten(1)), labels).backward()


def test_soft_labels_are_what_the_dataset_gives() -> None:
    soft = torch.rand(6, 3, generator=generator(1)).softmax(1)
    tiny = pictures(soft=soft, soft_from="a teacher")
    assert torch.equal(tiny.dataset()[2][1], soft[2])
    assert tiny.label_kind == "soft (a teacher)"


def test_it_is_applied_to_its_own_data_only() -> None:
    data = ImageData(torch.zeros(60, 1, 4, 4, dtype=torch.uint8), torch.arange(60) % 3, ("a", "b", "c"))
    assert len(pictures(fingerprint=data.fingerprint).apply(data)) == 6
    with pytest.raises(ValueError, match="condensed from other data"):
        pictures(fingerprint="0" * 64).apply(data)
    with pytest.raises(ValueError, match="other classes"):
        pictures().apply(replace(data, class_names=("a", "c", "b")))
    with pytest.raises(ValueError, match=r"shape \[1, 4, 4\], but this data of shape \[1, 8, 8\]"):
        pictures().apply(ImageData(torch.zeros(3, 1, 8, 8, dtype=torch.uint8), torch.arange(3), ("a", "b", "c")))


def test_shards_join_in_the_order_of_the_classes() -> None:
    soft = torch.rand(24, 3, generator=generator(1)).softmax(1)
    whole = pictures(factor=2, soft=soft, soft_from="a teacher")
    parts = [shard(whole, classes) for classes in ([2], [0, 1])]
    joined = SyntheticSet.join(parts)
    assert torch.equal(joined.inputs, whole.inputs)
    assert joined.soft is not None
    assert torch.equal(joined.soft, soft)
    with pytest.raises(ValueError, match="share classes"):
        SyntheticSet.join([parts[0], whole])
    with pytest.raises(ValueError, match="differ in seed"):
        SyntheticSet.join([parts[0], replace(parts[1], seed=1)])
    with pytest.raises(ValueError, match="differ in their recipes"):
        SyntheticSet.join([parts[0], replace(parts[1], recipe={"net": "mlp"})])
    with pytest.raises(ValueError, match="at least one shard"):
        SyntheticSet.join([])


def shard(whole: SyntheticSet, classes: list[int]) -> SyntheticSet:
    chosen = torch.isin(whole.labels, torch.tensor(classes))
    soft = None if whole.soft is None else whole.soft[chosen.repeat_interleave(whole.factor**2)]
    recipe = {**whole.recipe, "classes": classes, "seconds": float(len(classes))}
    return replace(whole, inputs=whole.inputs[chosen], labels=whole.labels[chosen], soft=soft, recipe=recipe)


def slow_decode(stored: Tensor, factor: int) -> Tensor:
    """Each part by itself, in Pillow's words: rows of parts from the upper left."""
    found = []
    for image in stored:
        side = image.shape[1] // factor
        for row in range(factor):
            for column in range(factor):
                part = image[:, row * side : (row + 1) * side, column * side : (column + 1) * side]
                found.append(nn.functional.interpolate(part[None], size=image.shape[1:], mode="bilinear")[0])
    return torch.stack(found)


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_decoding_cuts_and_enlarges(factor: int) -> None:
    stored = torch.rand(2, 3, 6, 6, generator=generator(2))
    decoded = decode(stored, factor)
    assert decoded.shape == (2 * factor**2, 3, 6, 6)
    torch.testing.assert_close(decoded, slow_decode(stored, factor))


def test_encoding_puts_shrunk_images_where_decoding_finds_them() -> None:
    smooth = torch.linspace(0, 1, 8).reshape(1, 1, 1, 8).expand(4, 1, 8, 8) * torch.arange(1, 5).reshape(4, 1, 1, 1)
    assert encode(smooth, 2).shape == (1, 1, 8, 8)
    assert (decode(encode(smooth, 2), 2) - smooth).abs().max() < 0.35


def test_the_grid_has_a_row_for_each_class(tmp_path: Path) -> None:
    tiny = pictures(inputs=(torch.arange(6) / 5).reshape(6, 1, 1, 1).expand(6, 1, 4, 4).contiguous())
    with Image.open(tiny.grid(tmp_path / "grid.png")) as picture:
        grid = np.asarray(picture.convert("L")).astype(int)
    assert grid.shape == (3 * 50 + 2, 2 * 50 + 2)
    centres = grid[26::50, 26::50]
    assert np.array_equal(centres, [[0, 51], [102, 153], [204, 255]])
    with pytest.raises(ValueError, match="needs images"):
        rows().grid(tmp_path / "other.png")


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (4, "RGBA")])
def test_pictures_have_the_mode_of_their_channels(channels: int, mode: str) -> None:
    assert as_picture(torch.zeros(channels, 3, 5, dtype=torch.uint8)).mode == mode
