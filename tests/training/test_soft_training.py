"""Training on soft targets, with DSA and CutMix, by the schedule of condensed sets."""

import pytest
import torch
from torch.nn import functional

from lcmat.training import log_of, train
from lcmat.training.optimiser import rate_at
from lcmat.types import Data
from samples import digits_like, same_state, vectors

NET = "convnet:width=4,depth=2"


def one_hot(data: Data) -> torch.Tensor:
    return functional.one_hot(data.labels, len(data.class_names)).float()


def test_one_hot_targets_are_the_labels() -> None:
    data = vectors()
    hard = train("mlp:width=8", data, epochs=3, seed=1)
    soft = train("mlp:width=8", data, epochs=3, seed=1, targets=one_hot(data))
    pairs = zip(hard.parameters(), soft.parameters(), strict=True)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)


def test_soft_targets_are_learnt() -> None:
    data = vectors(30)
    targets = torch.tensor([0.2, 0.3, 0.5]).expand(30, 3)
    model = train("mlp:width=8", data, epochs=60, targets=targets, weight_decay=0.0)
    log = log_of(model)
    assert log is not None
    assert log.losses[-1] == pytest.approx(1.0297, abs=0.02), "the entropy of the targets"


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.ones(3, 3) / 3, r"targets of shape \[50, 3\], a row for each sample, got \[3, 3\]"),
        (torch.ones(50, 3), "distributions"),
        (torch.full((50, 3), torch.nan), "distributions"),
    ],
)
def test_wrong_targets_are_refused(targets: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train("mlp:width=8", vectors(), epochs=1, targets=targets)


def test_dsa_and_cutmix_train_and_repeat() -> None:
    data = digits_like(24, flip=True)
    settings = {"epochs": 2, "augment": "color_crop_flip_scale_rotate", "cutmix": 0.5, "schedule": "drops", "lr": 0.01}
    first, second = (train(NET, data, seed=3, **settings) for _ in range(2))  # type: ignore[arg-type]
    assert same_state(first, second)
    assert not same_state(first, train(NET, data, seed=3, **{**settings, "cutmix": 0.0}))  # type: ignore[arg-type]
    assert not same_state(first, train(NET, data, seed=3, **{**settings, "augment": False}))  # type: ignore[arg-type]


def test_feature_vectors_are_not_augmented() -> None:
    data = vectors()
    plain = train("mlp:width=8", data, epochs=1)
    assert same_state(plain, train("mlp:width=8", data, epochs=1, augment="color_crop", cutmix=0.5))


def test_unknown_operations_and_probabilities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"augmentation of color, crop, .*, got 'blur'"):
        train(NET, digits_like(), epochs=1, augment="color_blur")
    with pytest.raises(ValueError, match="probability cutmix"):
        train(NET, digits_like(), epochs=1, cutmix=1.5)


def test_rate_drops_to_a_fifth_after_two_thirds_and_five_sixths() -> None:
    rates = [rate_at(step, 6, 1.0, "drops") for step in range(6)]
    assert rates == pytest.approx([1, 1, 1, 1, 0.2, 0.04])
