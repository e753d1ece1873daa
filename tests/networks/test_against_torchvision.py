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


@pytest.mark.parametrize(
    ("spec", "make", "size"),
    [
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
