"""Networks: sizes against the published ones, shapes, options, initialisation."""

import pytest
import torch
from torch import nn

from lcmat import networks
from lcmat.networks import NETS, build, find_head
from lcmat.networks.registry import Classifier
from lcmat.types import ImageData
from samples import digits_like, same_state, vectors


def blank(size: int, channels: int, classes: int) -> ImageData:
    images = torch.zeros(2, channels, size, size, dtype=torch.uint8)
    return ImageData(images, torch.arange(2), tuple(map(str, range(classes))))


def parameters(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


@pytest.mark.parametrize(
    ("spec", "size", "classes", "count"),
    [
        ("resnet18", 32, 10, 11_173_962),  # CIFAR form
        ("resnet18", 63, 10, 11_173_962),
        ("resnet18", 224, 1000, 11_689_512),  # ImageNet form
        ("convnet", 32, 10, 320_010),  # Dataset Condensation with Gradient Matching
    ],
)
def test_parameter_counts_are_the_published_ones(spec: str, size: int, classes: int, count: int) -> None:
    assert parameters(build(spec, blank(size, 3, classes))) == count


@pytest.mark.parametrize("spec", ["resnet18", "convnet:width=8", "convnet:width=8,depth=5", "mlp:width=8"])
@pytest.mark.parametrize(("size", "channels"), [(8, 1), (9, 3), (28, 1), (33, 3), (64, 4)])
def test_every_size_and_number_of_channels_trains(spec: str, size: int, channels: int) -> None:
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
    assert set(networks.nets()) == {entry.name for entry in NETS} == {"resnet18", "convnet", "mlp"}
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
