"""What the one loop does for every condenser: precision, turns, augmentation, the range of pixels."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from condensation.cases import METHODS, NET, images, quick, same
from lcmat import networks
from lcmat.condensation import CONDENSERS, CondenserFacts, Recipe, condense
from lcmat.condensation.methods import DSA
from lcmat.condensation.objectives import means_of_features
from lcmat.condensation.views import View, matched_layers, view_gradients
from lcmat.training.inputs import Normaliser


def test_bfloat16_for_real_samples_moves_their_gradients_less_than_another_draw_does() -> None:
    data = images()
    net = networks.build(NET, data, seed=3)
    quick = networks.build(NET, data, seed=3).bfloat16()
    pools = [Normaliser(data, torch.float32, torch.device("cpu"))(data.images[data.labels == k]) for k in range(3)]
    halves = torch.stack([pool[:16].reshape(2, 8, *pool.shape[1:]) for pool in pools], 1)
    targets = torch.eye(3)[:, None].expand(-1, 8, -1)
    rounded, exact, other = (
        view_gradients(model, matched_layers(model, head=True), inputs, targets).gradients
        for model, inputs in ((quick, halves[0]), (net, halves[0]), (net, halves[1]))
    )
    for ours, truth, another in zip(rounded, exact, other, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - truth).norm() < 0.1 * (another - truth).norm()


@pytest.mark.parametrize("method", [name for name in METHODS if name != "random"])
def test_every_condenser_works_in_bfloat16(method: str) -> None:
    tiny = quick(method, precision="bf16")
    assert tiny.recipe["precision"] == "bf16"
    assert torch.isfinite(tiny.inputs).all()
    assert not same(tiny, quick("random"))


def test_many_synthetic_samples_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONDENSERS, "_entries", dict(CONDENSERS._entries))
    seen: set[int] = set()

    def remember(real: View, synthetic: View) -> Tensor:
        seen.add(synthetic.inputs.shape[1])
        return means_of_features(real, synthetic)

    @CONDENSERS.add("in-turns", "seven at a time", facts=CondenserFacts("none", "as dm"))
    def in_turns(*, lr: float = 0.5) -> Recipe:
        return Recipe(remember, looks_at="features", lr=lr, period=10, synthetic_batch=7)

    first, last = (
        condense(images(), "in-turns", per_class=5, factor=2, steps=steps, lr=lr, net=NET, device="cpu")
        for steps, lr in ((1, 1e-9), (20, 0.5))
    )
    assert seen == {7}, "of 20 in each class"
    assert ((first.inputs - last.inputs).abs().amax((1, 2, 3)) > 1e-3).all(), "every stored one has moved"


def test_real_and_synthetic_samples_undergo_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONDENSERS, "_entries", dict(CONDENSERS._entries))
    plain = images()
    first = torch.stack([plain.images[plain.labels == index][0] for index in range(3)])
    data = replace(plain, images=first[plain.labels])
    alike: list[bool] = []

    def compare(real: View, synthetic: View) -> Tensor:
        alike.append(torch.allclose(real.inputs[:, :1], synthetic.inputs[:, :1], atol=1e-5))
        return synthetic.inputs.sum((1, 2, 3, 4))

    @CONDENSERS.add("compared", "of equal samples", facts=CondenserFacts("none", "none"))
    def compared(*, single: bool) -> Recipe:
        return Recipe(compare, looks_at="inputs", lr=1e-9, augmentation=DSA, single=single)

    for single in (False, True):
        condense(data, "compared", per_class=1, steps=8, single=single, device="cpu")
    assert alike == 16 * [True]


def test_pixels_are_in_their_range_for_each_new_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONDENSERS, "_entries", dict(CONDENSERS._entries))
    data = images()
    largest = ((1 - torch.tensor(data.mean)) / torch.tensor(data.std)).reshape(-1, 1, 1)
    within: list[bool] = []

    def brighten(real: View, synthetic: View) -> Tensor:
        within.append(bool((synthetic.inputs <= largest + 1e-5).all()))
        return -synthetic.inputs.sum((1, 2, 3, 4))

    @CONDENSERS.add("bright", "towards white", facts=CondenserFacts("none", "none"))
    def bright() -> Recipe:
        return Recipe(brighten, looks_at="inputs", lr=100.0, longest=100.0, period=2)

    condense(data, "bright", per_class=1, steps=6, device="cpu")
    assert within == 3 * [True, False]


def test_a_new_condenser_is_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONDENSERS, "_entries", dict(CONDENSERS._entries))

    @CONDENSERS.add("own", "means under one network", facts=CondenserFacts("none", "as dm"))
    def own(*, lr: float = 0.5) -> Recipe:
        return Recipe(means_of_features, looks_at="features", lr=lr, period=10)

    tiny = condense(images(), "own", per_class=1, steps=20, net=NET, lr=0.2, device="cpu")
    assert tiny.options == {"lr": 0.2}
