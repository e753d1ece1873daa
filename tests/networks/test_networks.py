"""Networks: sizes against the published ones, shapes, options, initialisation."""

from typing import Any

import pytest
import torch
from torch import nn

from lcmat import networks
from lcmat.networks import NETS, build, find_head
from lcmat.networks.registry import Classifier, GlobalAverage
from lcmat.seeding import generator
from lcmat.types import ImageData
from samples import digits_like, same_state, vectors


def blank(size: int, channels: int, classes: int) -> ImageData:
    images = torch.zeros(2, channels, size, size, dtype=torch.uint8)
    return ImageData(images, torch.arange(2), tuple(map(str, range(classes))))


def parameters(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


def outline(spec: str, size: int, classes: int, channels: int = 3) -> Classifier:
    """The network without memory for its weights."""
    data = blank(size, channels, classes)
    with torch.device("meta"):
        net = build(spec, data)
    assert isinstance(net, Classifier)
    return net


@pytest.mark.parametrize(
    ("spec", "size", "classes", "count"),
    [
        # The form for CIFAR, as the networks' authors or the usual re-implementations count it.
        ("resnet18", 32, 10, 11_173_962),
        ("resnet18", 63, 10, 11_173_962),
        ("resnet34", 32, 10, 21_282_122),
        ("resnet10", 32, 10, 1_228_970),
        ("resnet10:width=64", 32, 10, 4_903_242),
        ("vgg16", 32, 10, 14_728_266),
        ("inception-v3", 32, 10, 21_806_058),
        ("wrn-16-8", 32, 10, 10_961_370),
        ("densenet121", 32, 10, 6_956_298),
        ("convnet", 32, 10, 320_010),
        # The form for ImageNet.
        ("resnet18", 224, 1000, 11_689_512),
        ("resnet34", 224, 1000, 21_797_672),
        ("resnet10:width=64", 224, 1000, 5_418_792),
        ("vgg16", 224, 1000, 138_365_992),
        ("inception-v3", 299, 1000, 23_834_568),  # without the auxiliary head's 3,326,696
        ("densenet121", 224, 1000, 7_978_856),
    ],
)
def test_parameter_counts_are_the_published_ones(spec: str, size: int, classes: int, count: int) -> None:
    assert parameters(outline(spec, size, classes)) == count


def test_resnet10_has_the_weights_of_a_formula() -> None:
    def block(before: int, after: int) -> int:
        shortcut = before * after + 2 * after if before != after else 0
        return 9 * before * after + 9 * after * after + 4 * after + shortcut

    stem, head = 9 * 3 * 32 + 2 * 32, 256 * 10 + 10
    assert parameters(outline("resnet10", 32, 10)) == stem + head + sum(
        map(block, (32, 32, 64, 128), (32, 64, 128, 256))
    )


LARGE_NETS = ("resnet18", "resnet34", "resnet10", "vgg16", "inception-v3", "wrn-16-8", "densenet121")


@pytest.mark.parametrize("spec", [*LARGE_NETS, "convnet", "mlp"])
@pytest.mark.parametrize(("size", "channels"), [(8, 1), (9, 3), (16, 3), (28, 1), (63, 3), (64, 1)])
def test_every_size_and_number_of_channels_fits(spec: str, size: int, channels: int) -> None:
    net = outline(spec, size, 7, channels)
    inputs = torch.empty(2, channels, size, size, device="meta")
    assert net(inputs).shape == (2, 7)
    assert net.features(inputs).shape == (2, net.head.in_features)


@pytest.mark.parametrize(
    ("spec", "size", "channels"),
    [
        *((spec, 8, 1) for spec in LARGE_NETS),
        *((spec, size, 3) for spec in ("resnet10", "convnet:width=8", "convnet:width=8,depth=5") for size in (8, 33)),
        ("resnet10", 64, 4),
        ("mlp:width=8", 9, 3),
    ],
)
def test_a_step_reaches_every_weight(spec: str, size: int, channels: int) -> None:
    net = build(spec, blank(size, channels, 7))
    assert isinstance(net, Classifier)
    inputs = torch.randn(2, channels, size, size)
    logits = net(inputs)
    assert logits.shape == (2, 7)
    logits.sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())
    net.eval()
    features = net.features(inputs)
    assert features.ndim == 2
    torch.testing.assert_close(net.head(features), net(inputs))
    assert find_head(net) == ("head", net.head)


@pytest.mark.parametrize(
    ("spec", "size", "kind", "left"),
    [
        ("vgg16", 8, nn.MaxPool2d, 3),
        ("vgg16", 16, nn.MaxPool2d, 4),
        ("vgg16", 32, nn.MaxPool2d, 5),
        ("vgg16", 63, nn.MaxPool2d, 5),
        ("densenet121", 8, nn.AvgPool2d, 3),
        ("densenet121", 32, nn.AvgPool2d, 3),
    ],
)
def test_pools_drop_out_where_the_map_is_used_up(spec: str, size: int, kind: type[nn.Module], left: int) -> None:
    assert sum(isinstance(part, kind) for part in outline(spec, size, 2).modules()) == left


@pytest.mark.parametrize(("size", "last"), [(8, 2), (12, 1), (32, 6), (63, 14)])
def test_inception_reduces_its_map_as_long_as_three_pixels_are_left(size: int, last: int) -> None:
    net = outline("inception-v3", size, 2)
    seen: list[int] = []
    average = next(part for part in net.modules() if isinstance(part, GlobalAverage))
    average.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[-1]))
    net(torch.empty(2, 3, size, size, device="meta"))
    assert seen == [last]


def slow_wide_resnet(net: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """WRN-16-8 in evaluation mode, operation by operation, with the weights in the order of the layers."""
    functional = nn.functional
    left = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.BatchNorm2d | nn.Linear)]

    def take(kind: type[nn.Module]) -> Any:
        layer = left.pop(0)
        assert isinstance(layer, kind)
        return layer

    def active(maps: torch.Tensor) -> torch.Tensor:
        norm = take(nn.BatchNorm2d)
        scale, shift = norm.weight / torch.sqrt(norm.running_var + 1e-5), norm.bias
        return torch.relu((maps - norm.running_mean.view(-1, 1, 1)) * scale.view(-1, 1, 1) + shift.view(-1, 1, 1))

    maps = functional.conv2d(images, take(nn.Conv2d).weight, padding=1)
    for stage in range(3):
        for place in range(2):
            stride = 2 if stage and not place else 1
            before, inner = maps, active(maps)
            outer = functional.conv2d(inner, take(nn.Conv2d).weight, stride=stride, padding=1)
            outer = functional.conv2d(active(outer), take(nn.Conv2d).weight, padding=1)
            short = before if place else functional.conv2d(inner, take(nn.Conv2d).weight, stride=stride)
            maps = outer + short
    features = active(maps).flatten(2).mean(2)
    head = take(nn.Linear)
    return functional.linear(features, head.weight, head.bias)


def test_the_wide_network_computes_what_its_paper_says() -> None:
    net = build("wrn-16-8", blank(32, 3, 10)).eval()
    draws = generator(0, "weights")
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_(0, 0.1, generator=draws)
            part.running_var.uniform_(0.5, 1.5, generator=draws)
    images = torch.randn(2, 3, 32, 32, generator=draws)
    with torch.no_grad():
        torch.testing.assert_close(net(images), slow_wide_resnet(net, images), rtol=1e-4, atol=1e-5)


def test_small_maps_are_not_pooled_to_a_single_pixel() -> None:
    shapes = {size: build("convnet:width=4", blank(size, 1, 2)).head.in_features for size in (8, 16, 32)}  # type: ignore[union-attr]
    assert shapes == {8: 4 * 2 * 2, 16: 4 * 2 * 2, 32: 4 * 4 * 4}


def test_the_small_stem_keeps_the_resolution_and_the_large_one_quarters_it() -> None:
    for size, expected in ((32, 32), (64, 16)):
        net = build("resnet18", blank(size, 3, 2))
        blocks = [part for part in net.modules() if type(part).__name__ == "BasicBlock"]
        seen: list[int] = []
        blocks[0].register_forward_hook(lambda _, inputs, __, seen=seen: seen.append(inputs[0].shape[-1]))
        net.eval()(torch.randn(1, 3, size, size))
        assert seen == [expected]


def test_convnet_normalises_each_channel_of_each_image() -> None:
    net = build("convnet:width=5,depth=1", blank(8, 1, 2))
    norm = next(part for part in net.modules() if isinstance(part, nn.GroupNorm))
    maps = torch.randn(3, 5, 8, 8) * 7 + 2
    torch.testing.assert_close(norm(maps), nn.functional.instance_norm(maps), atol=1e-5, rtol=1e-4)


def test_options_are_read_from_the_specification() -> None:
    data = blank(8, 1, 3)
    assert parameters(build("convnet:width=4, depth=1", data)) == (9 * 4 + 4) + 8 + (4 * 16 * 3 + 3)
    assert parameters(build("mlp:width=5,depth=1", vectors(d=7, classes=3))) == (7 * 5 + 5) + (5 * 3 + 3)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("convent", ValueError, r"unknown network 'convent'; did you mean 'convnet'\?.*resnet18"),
        ("convnet:widht=3", TypeError, r"unknown option of convnet 'widht'.*valid: width, depth"),
        ("convnet:width=wide", ValueError, r"option width takes int, got 'wide'"),
        ("convnet:width", ValueError, r"options as name=value after 'convnet:', got 'width'"),
        ("convnet:depth=0", ValueError, r"depth of at least 1, got 0"),
        (3, TypeError, r"name of a network or an nn.Module, got int"),
    ],
)
def test_a_wrong_specification_says_what_is_right(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(spec, blank(8, 1, 2))


def test_a_network_for_images_refuses_feature_vectors() -> None:
    with pytest.raises(ValueError, match=r"resnet18 is for images.*use 'mlp'"):
        build("resnet18", vectors())


def test_the_seed_decides_the_weights_and_the_global_generator_is_left_alone() -> None:
    data = digits_like()
    before = torch.get_rng_state()
    first, second, other = (build("convnet:width=4", data, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert same_state(first, second)
    assert not same_state(first, other)


def test_a_module_is_taken_as_it_is() -> None:
    net = nn.Linear(3, 2)
    assert build(net, vectors()) is net


def test_every_network_is_described() -> None:
    assert set(networks.nets()) == {entry.name for entry in NETS} == {*LARGE_NETS, "convnet", "mlp"}
    assert "width=128" in networks.nets()["convnet"]


def test_find_head_takes_the_last_linear_layer_or_the_named_one() -> None:
    model = nn.ModuleDict({"first": nn.Linear(4, 3), "last": nn.Sequential(nn.ReLU(), nn.Linear(3, 2))})
    assert find_head(model) == ("last.1", model["last"][1])  # type: ignore[index]
    assert find_head(model, "first") == ("first", model["first"])
    with pytest.raises(ValueError, match=r"got 'middle'; it has 'first', 'last.1'"):
        find_head(model, "middle")


def test_a_model_without_a_linear_layer_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"has no nn.Linear; end it with one .*lcmat.Signals"):
        find_head(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()))
