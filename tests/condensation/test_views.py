"""One pass over all classes against one class after the other."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lcmat import networks
from lcmat.condensation.views import View, matched_layers, view_features, view_gradients
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


def look(net: nn.Module, inputs: Tensor, targets: Tensor, *, head: bool = True, differentiable: bool = False) -> View:
    layers = matched_layers(net, head=head)
    return view_gradients(net, layers, inputs, targets, differentiable=differentiable, precision="float32")


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
        torch.testing.assert_close(ours, truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("spec", ["convnet:width=4,depth=2", "mlp:width=7"])
def test_derivatives_of_all_classes_at_once_equal_class_by_class(spec: str) -> None:
    net = network(spec)
    inputs, targets = batch(net)

    def objective(view: View) -> Tensor:
        value = torch.stack([part.square().sum() for part in view.gradients]).sum()
        return value + view.residuals.square().sum() * view.head_inputs.sum()

    together = inputs.clone().requires_grad_()
    [found] = torch.autograd.grad(objective(look(net, together, targets, differentiable=True)), together)
    for index in range(3):
        alone = inputs[index : index + 1].clone().requires_grad_()
        view = look(net, alone, targets[index : index + 1], differentiable=True)
        value = torch.stack([part.square().sum() for part in view.gradients]).sum()
        [expected] = torch.autograd.grad(value, alone)
        whole = inputs.clone().requires_grad_()
        view = look(net, whole, targets, differentiable=True)
        value = torch.stack([part.square().sum() for part in view.gradients]).sum()
        [own] = torch.autograd.grad(value, whole)
        torch.testing.assert_close(own[index], expected[0], rtol=1e-9, atol=1e-10)
    assert torch.isfinite(found).all()


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
    view = view_features(net, inputs, targets, differentiable=False, precision="float32")
    torch.testing.assert_close(view.features[2, 3], net.get_submodule("body")(inputs[2, 3:4])[0])


def test_networks_whose_samples_see_each_other_are_refused() -> None:
    data: ImageData = digits_like()
    with pytest.raises(ValueError, match=r"without batch normalisation .* has BatchNorm2d"):
        matched_layers(networks.build("resnet18", data), head=True)
