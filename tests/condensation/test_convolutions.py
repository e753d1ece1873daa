"""Convolutions as products of matrices against torch's own."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lcmat.condensation import convolutions as module
from lcmat.condensation.convolutions import FewChannels, class_gradients, class_outputs, product
from lcmat.seeding import generator

SETTINGS: list[dict[str, Any]] = [
    {"padding": 1},
    {"padding": 1, "stride": 2},
    {"kernel_size": (3, 2), "padding": (0, 1)},
    {"kernel_size": 1},
]


def convolution(channels: int, **settings: Any) -> nn.Conv2d:
    layer: nn.Conv2d = nn.utils.skip_init(
        nn.Conv2d, channels, 5, **{"kernel_size": 3, "bias": False, **settings}
    ).double()
    with torch.no_grad():
        layer.weight.copy_(numbers(*layer.weight.shape, seed=9))
    return layer


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=generator(seed, "convolutions"))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("channels", [3, 8])
@pytest.mark.parametrize("many", [1, 10**9])
def test_gradients_of_classes_are_those_of_one_class_after_the_other(
    settings: dict[str, Any], channels: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MANY_POSITIONS", many)
    layer = convolution(channels, **settings)
    inputs = numbers(6, channels, 7, 8)
    outputs = layer(inputs)
    slopes = numbers(*outputs.shape, seed=1)
    found = class_gradients(layer, inputs, slopes, 2)
    for index, part in enumerate((slice(0, 3), slice(3, 6))):
        [expected] = torch.autograd.grad((layer(inputs[part]) * slopes[part]).sum(), layer.weight)
        torch.testing.assert_close(found[index], expected.flatten(1))
    torch.testing.assert_close(class_outputs(layer, inputs, layer.weight.flatten(1).expand(2, -1, -1)), outputs)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_convolution_of_few_channels_is_a_product(settings: dict[str, Any]) -> None:
    layer = convolution(3, **settings)
    inputs = numbers(4, 3, 7, 8)
    expected, found = layer(inputs), product(layer, inputs)
    torch.testing.assert_close(found, expected)
    slopes = numbers(*expected.shape, seed=1)
    [truth], [ours] = (torch.autograd.grad((maps * slopes).sum(), layer.weight) for maps in (expected, found))
    torch.testing.assert_close(ours, truth)


def test_only_plain_convolutions_of_few_channels_are_replaced() -> None:
    assert FewChannels.suits(convolution(3))
    assert not FewChannels.suits(convolution(8))
    assert not FewChannels.suits(convolution(3, bias=True))
    assert not FewChannels.suits(convolution(3, dilation=2))


def test_replacing_one_keeps_its_weights_and_draws_nothing() -> None:
    layer = convolution(3, padding=1, stride=2)
    before = torch.get_rng_state()
    own = FewChannels.of(layer)
    assert torch.equal(torch.get_rng_state(), before)
    assert own.weight is layer.weight
    inputs = numbers(2, 3, 7, 8)
    torch.testing.assert_close(own(inputs), layer(inputs), rtol=0, atol=0)


@pytest.mark.gpu
def test_on_a_gpu_it_is_the_convolution_with_and_without_derivatives_in_the_images() -> None:
    layer = convolution(3, padding=1).cuda()
    own = FewChannels.of(layer)
    inputs = numbers(4, 3, 8, 8).cuda()
    expected = layer(inputs)
    slopes = numbers(*expected.shape, seed=1).cuda()
    [truth] = torch.autograd.grad((expected * slopes).sum(), layer.weight)
    for images in (inputs, inputs.clone().requires_grad_()):
        found = own(images)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad((found * slopes).sum(), layer.weight)[0], truth)
