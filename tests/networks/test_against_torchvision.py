"""The networks beside torchvision's, weight for weight; skipped where torchvision is not installed."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lcmat.networks import build
from lcmat.seeding import generator, isolated
from lcmat.types import ImageData

models: Any = pytest.importorskip(
    "torchvision.models", reason="needs torchvision, which lcmat does without", exc_type=ImportError
)


def run(net: nn.Module, inputs: Tensor) -> tuple[Tensor, list[nn.Module]]:
    """The output, and the layers with weights in the order in which they were passed."""
    seen: list[nn.Module] = []
    layers = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.BatchNorm2d | nn.Linear)]
    handles = [layer.register_forward_hook(lambda layer, _, __: seen.append(layer)) for layer in layers]
    with torch.no_grad():
        output: Tensor = net(inputs)
    for handle in handles:
        handle.remove()
    return output, seen


def small_resnet(blocks: tuple[int, ...]) -> Any:
    """With a 3 × 3 stem and no pool behind it, as networks for CIFAR have."""
    net = models.resnet.ResNet(models.resnet.BasicBlock, list(blocks))
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return net


def small_densenet() -> Any:
    net = models.densenet121()
    net.features.conv0 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    net.features.norm0 = net.features.relu0 = net.features.pool0 = nn.Identity()
    return net


def small_inception() -> Any:
    """With a stem that neither strides nor pools."""
    net = models.inception_v3(init_weights=False, aux_logits=False)
    net.Conv2d_1a_3x3.conv.stride = net.Conv2d_1a_3x3.conv.padding = (1, 1)
    net.Conv2d_2a_3x3.conv.padding = (1, 1)
    net.maxpool1 = net.maxpool2 = nn.Identity()
    return net


def small_vgg() -> Any:
    net = models.vgg16_bn(init_weights=False)
    net.avgpool, net.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(512, 1000)
    return net


@pytest.mark.parametrize(
    ("spec", "make", "size"),
    [
        ("resnet18", lambda: small_resnet((2, 2, 2, 2)), 32),
        ("resnet34", lambda: small_resnet((3, 4, 6, 3)), 24),
        ("resnet10:width=64", lambda: small_resnet((1, 1, 1, 1)), 32),
        ("vgg16", small_vgg, 32),
        ("inception-v3", small_inception, 32),
        ("densenet121", small_densenet, 32),
        ("resnet18", models.resnet18, 64),
        ("resnet34", models.resnet34, 64),
        ("densenet121", models.densenet121, 64),
        ("inception-v3", lambda: models.inception_v3(init_weights=False, aux_logits=False), 96),
        pytest.param("vgg16", lambda: models.vgg16_bn(init_weights=False), 64, marks=pytest.mark.slow),
    ],
)
def test_the_same_weights_give_the_same_logits(spec: str, make: Any, size: int) -> None:
    names = tuple(map(str, range(1000)))
    data = ImageData(torch.zeros(2, 3, size, size, dtype=torch.uint8), torch.arange(2), names)
    draws = generator(0, "weights")
    with isolated(0, "theirs"):
        theirs = make().eval()
    ours = build(spec, data).eval()
    inputs = torch.randn(2, 3, size, size, generator=draws)
    _, own = run(ours, inputs)
    _, other = run(theirs, inputs)
    assert len(own) == len(other)
    for mine, its in zip(own, other, strict=True):
        if isinstance(its, nn.BatchNorm2d):
            assert its.running_mean is not None
            assert its.running_var is not None
            its.running_mean.normal_(0, 0.1, generator=draws)
            its.running_var.uniform_(0.5, 1.5, generator=draws)
        mine.load_state_dict(its.state_dict())
    torch.testing.assert_close(run(ours, inputs)[0], run(theirs, inputs)[0], rtol=1e-4, atol=1e-5)
