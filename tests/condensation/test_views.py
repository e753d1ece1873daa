"""One pass over all classes against one class after the other."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lcmat import networks
from lcmat.condensation import views
from lcmat.condensation.follower import lightened
from lcmat.condensation.views import View, along, matched_layers, view_features, view_gradients
from lcmat.seeding import generator
from lcmat.types import ImageData
from reference import class_gradients
from samples import digits_like, vectors


def network(spec: str) -> nn.Module:
    data = vectors(12, d=6) if spec.startswith("mlp") else digits_like(12, channels=2, classes=3)
    return networks.build(spec, data, seed=1).double()


def batch(net: nn.Module, samples: int = 5, *, soft: bool = False) -> tuple[Tensor, Tensor]:
    """Samples of three classes with their targets."""
    draws = generator(0, "views")
    shape = (
        (3, samples, 6)
        if isinstance(net.get_submodule("body").get_submodule("1"), nn.Linear)
        else (3, samples, 2, 8, 8)
    )
    inputs = torch.randn(shape, generator=draws, dtype=torch.float64)
    targets = functional.one_hot(torch.arange(3), 3).double()[:, None].expand(-1, samples, -1)
    if soft:
        targets = torch.rand(3, samples, 3, generator=draws, dtype=torch.float64).softmax(-1)
    return inputs, targets


def look(net: nn.Module, inputs: Tensor, targets: Tensor, *, head: bool = True) -> View:
    return view_gradients(net, matched_layers(net, head=head), inputs, targets)


@pytest.mark.parametrize("spec", ["convnet:width=4,depth=2", "mlp:width=7"])
@pytest.mark.parametrize("soft", [False, True])
def test_all_classes_at_once_equal_class_by_class(spec: str, soft: bool) -> None:
    net = network(spec)
    inputs, targets = batch(net, soft=soft)
    weights = [layer.weight for layer in matched_layers(net, head=True)]
    expected = class_gradients(net, weights, inputs, targets)  # type: ignore[arg-type]
    found = look(net, inputs, targets).gradients
    assert len(found) == len(expected) == 3
    for ours, truth in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, truth.detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("spec", ["convnet:width=4,depth=2", "mlp:width=7"])
@pytest.mark.parametrize("light", [False, True])
def test_the_derivative_along_a_direction_is_that_of_differentiable_gradients(spec: str, light: bool) -> None:
    net = lightened(network(spec)) if light else network(spec)
    inputs, targets = batch(net, soft=True)
    layers = matched_layers(net, head=True)
    view = look(net, inputs, targets)
    draws = generator(3, "direction")
    parts = [
        torch.randn(part.shape, generator=draws, dtype=torch.float64)
        for part in (*view.gradients, view.residuals, view.head_inputs, view.features)
    ]
    direction = View(inputs, targets, tuple(parts[:3]), *parts[3:])
    learned = (inputs.clone().requires_grad_(), targets.clone().requires_grad_())
    found = torch.autograd.grad(along(net, layers, *learned, direction), learned)

    weights = [layer.weight for layer in layers]
    truth = class_gradients(net, weights, *learned)  # type: ignore[arg-type]
    features = net.get_submodule("body")(learned[0].flatten(0, 1)).unflatten(0, (3, 5))
    residuals = net.get_submodule("head")(features).softmax(-1) * learned[1].sum(-1, keepdim=True) - learned[1]
    rows = torch.cat([features, torch.ones(3, 5, 1, dtype=torch.float64)], -1)
    value = torch.stack([(a * b).sum() for a, b in zip(parts, [*truth, residuals, rows, features], strict=True)]).sum()
    expected = torch.autograd.grad(value, learned)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("settings", [{"stride": 2}, {"kernel_size": (3, 2), "padding": (0, 1)}, {"kernel_size": 1}])
def test_any_plain_convolution_gives_its_class_gradients(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(2, 3, **{"kernel_size": 3, "padding": 1, **settings}).double()
    inputs = torch.randn(6, 2, 7, 8, dtype=torch.float64, generator=generator(1))
    outputs = layer(inputs)
    slopes = torch.randn(outputs.shape, dtype=torch.float64, generator=generator(2))
    found = views._class_gradients(layer, inputs, slopes, 2)
    for index, part in enumerate((slice(0, 3), slice(3, 6))):
        [expected] = torch.autograd.grad((layer(inputs[part]) * slopes[part]).sum() / 3, layer.weight)
        torch.testing.assert_close(found[index], expected.flatten(1))
    own = views._class_outputs(layer, inputs, layer.weight.flatten(1).expand(2, -1, -1))
    assert layer.bias is not None
    torch.testing.assert_close(own, outputs - layer.bias[:, None, None])


def test_factors_of_the_head_are_residuals_and_features() -> None:
    net = network("convnet:width=4,depth=2")
    inputs, targets = batch(net, soft=True)
    view = look(net, inputs, targets, head=False)
    logits = net(inputs.flatten(0, 1)).unflatten(0, (3, 5))
    torch.testing.assert_close(view.residuals, logits.softmax(-1) - targets)
    features = net.get_submodule("body")(inputs.flatten(0, 1)).unflatten(0, (3, 5))
    torch.testing.assert_close(view.features, features)
    torch.testing.assert_close(view.head_inputs[..., :-1], features)
    assert bool((view.head_inputs[..., -1] == 1).all())
    assert len(view.gradients) == 2, "both convolutions, without the head"


def test_real_views_carry_no_graph_and_leave_the_network_alone() -> None:
    net = network("convnet:width=4,depth=2")
    inputs, targets = batch(net)
    view = look(net, inputs, targets)
    assert not any(part.requires_grad for part in (*view.gradients, view.residuals, view.head_inputs))
    assert all(weight.grad is None for weight in net.parameters())
    assert not any(layer._forward_hooks for layer in net.modules())


def test_features_are_those_of_the_body() -> None:
    net = network("mlp:width=7")
    inputs, targets = batch(net)
    view = view_features(net, inputs, targets)
    torch.testing.assert_close(view.features[2, 3], net.get_submodule("body")(inputs[2, 3:4])[0])


def test_networks_whose_samples_see_each_other_are_refused() -> None:
    data: ImageData = digits_like()
    with pytest.raises(ValueError, match=r"without batch normalisation .* has BatchNorm"):
        matched_layers(networks.build("resnet18", data), head=True)
