"""The augmentation of DSA and CutMix."""

import pytest
import torch
from torch import Tensor

from lcmat import augment
from lcmat.seeding import generator

CPU = torch.device("cpu")


def batch(n: int = 6, channels: int = 3, size: int = 8, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, channels, size, size, generator=generator(0), dtype=dtype)


def once(*operations: str, groups: int = 1, seed: int = 1, single: bool = False) -> augment.Draw:
    return augment.draw(operations, groups, generator=generator(seed, "draw"), device=CPU, single=single)


@pytest.mark.parametrize("operation", augment.OPERATIONS)
def test_one_draw_treats_all_images_alike_and_repeats(operation: str) -> None:
    change, images = once(operation, seed=3), batch()
    together = change(images)
    assert together.shape == images.shape
    torch.testing.assert_close(torch.cat([change(image[None]) for image in images]), together)
    assert any(not torch.equal(once(operation, seed=seed)(images), together) for seed in range(4, 9))


@pytest.mark.parametrize("operation", augment.OPERATIONS)
def test_groups_are_treated_each_in_its_own_way(operation: str) -> None:
    images = batch(1).expand(8, -1, -1, -1)
    changed = once(operation, groups=4)(images).unflatten(0, (4, 2))
    assert torch.equal(changed[:, 0], changed[:, 1])
    assert any(not torch.equal(changed[0], other) for other in changed[1:])
    some = once(operation, groups=4).take(torch.tensor([2, 0]))(images[:4]).unflatten(0, (2, 2))
    torch.testing.assert_close(some, changed[[2, 0]])


@pytest.mark.parametrize("operation", augment.OPERATIONS)
def test_derivatives_are_finite_differences(operation: str) -> None:
    change = once(operation, seed=5)
    assert torch.autograd.gradcheck(change, batch(2, 1, 5).requires_grad_())


def test_crop_shifts_by_whole_pixels_and_fills_with_zero() -> None:
    image = batch(1, 1, 16)
    padded = torch.nn.functional.pad(image, (2, 2, 2, 2))
    windows = {
        (row, column): padded[..., row : row + 16, column : column + 16] for row in range(5) for column in range(5)
    }
    seen = set()
    for seed in range(120):
        changed = once("crop", seed=seed)(image)
        places = [place for place, window in windows.items() if torch.equal(window, changed)]
        assert places
        seen.add(places[0])
    assert len(seen) == 25, "an eighth of the side in all directions"


def test_cutout_blanks_a_square_of_half_the_side() -> None:
    image = torch.ones(1, 1, 8, 8)
    sizes = set()
    for seed in range(60):
        gone = once("cutout", seed=seed)(image)[0, 0] == 0
        rows, columns = int(gone.any(1).sum()), int(gone.any(0).sum())
        assert int(gone.sum()) == rows * columns
        sizes.add((rows, columns))
    assert max(sizes) == (4, 4)
    assert min(min(size) for size in sizes) >= 2, "the centre lies inside the image"


def test_flip_mirrors_half_of_the_draws() -> None:
    image = batch(1)
    changed = [once("flip", seed=seed)(image) for seed in range(80)]
    mirrored = sum(torch.equal(one, image.flip(-1)) for one in changed)
    assert 25 < mirrored < 55
    assert mirrored + sum(torch.equal(one, image) for one in changed) == 80


def test_color_keeps_shapes_of_objects_and_stays_in_bounds() -> None:
    image = batch(1, 1)
    for seed in range(40):
        changed = once("color", seed=seed)(image)
        slope = (changed - changed.mean()).norm() / (image - image.mean()).norm()
        assert 0.5 <= float(slope) <= 1.5, "contrast alone changes a grey image's spread"
        assert abs(float(changed.mean() - image.mean())) <= 0.5 + 1e-9
        correlation = torch.corrcoef(torch.stack([changed.flatten(), image.flatten()]))[0, 1]
        assert float(correlation) == pytest.approx(1)


def test_saturation_works_on_colours_only() -> None:
    grey = batch(1, 1).expand(1, 3, 8, 8)
    changed = once("color")(grey)
    assert torch.allclose(changed[:, 0], changed[:, 2])


def test_rotation_and_scale_keep_the_centre() -> None:
    spot = torch.zeros(1, 1, 9, 9)
    spot[0, 0, 4, 4] = 1
    for seed in range(10):
        for operation in ("rotate", "scale"):
            changed = once(operation, seed=seed)(spot)[0, 0]
            assert int(changed.flatten().argmax()) == 40
    corner = torch.zeros(1, 1, 9, 9)
    corner[0, 0, 4, 8] = 1
    assert not torch.equal(once("rotate")(corner), corner)


def test_single_applies_one_operation_to_each_group() -> None:
    image = torch.ones(1, 1, 8, 8).expand(200, 1, 8, 8)
    changed = once("cutout", "color", groups=200, single=True)(image)
    blanked = (changed == 0).flatten(1).any(1)
    brighter = (changed.amax((1, 2, 3)) - 1).abs() > 1e-6
    assert not (blanked & brighter).any()
    assert 70 < int(blanked.sum()) < 130


def test_strategies_are_parsed() -> None:
    assert augment.parse_operations("") == ()
    with pytest.raises(ValueError, match="got 'mixup'"):
        augment.parse_operations("crop_mixup")


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_cutmix_mixes_labels_by_the_pixels(probability: float) -> None:
    n = 5
    images = torch.arange(n).double().reshape(n, 1, 1, 1).expand(n, 2, 8, 8)
    targets = torch.eye(n, dtype=torch.float64)
    draws, mixed_batches = generator(2, "cutmix"), 0
    shares = []
    for _ in range(100):
        mixed, labels = augment.cutmix(images, targets, probability=probability, generator=draws)
        counted = torch.stack([(mixed[:, 0] == value).double().mean((1, 2)) for value in range(n)], 1)
        torch.testing.assert_close(counted, labels)
        mixed_batches += not torch.equal(mixed, images)
        shares.append(float((1 - labels.diagonal()).max()))
    assert {0.0: mixed_batches == 0, 0.5: 30 < mixed_batches < 62, 1.0: mixed_batches > 85}[probability]
    if probability == 1:
        assert max(shares) > 0.6
