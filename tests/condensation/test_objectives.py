"""Objectives against their definitions, automatic differentiation and finite differences."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lcmat import networks
from lcmat.condensation import kernels, objectives
from lcmat.condensation.follower import lightened
from lcmat.condensation.views import View, along, matched_layers, slope, view_features, view_gradients
from lcmat.linear_head import gradient_variances
from lcmat.seeding import generator
from samples import digits_like

Objective = Callable[[View, View], Tensor]
RIDGE: Objective = partial(objectives.ridge_regression, kernel=partial(kernels.dense_kernel, depth=2), ridge=1e-2)
BY_GRADIENT: dict[str, Objective] = {
    "cosine": objectives.gradients_by_cosine,
    "square": objectives.gradients_by_square,
    "variances": objectives.head_variances,
    "lcmat-c": partial(objectives.curvature, rho=0.5),
}


def samples(each: int, seed: int) -> tuple[Tensor, Tensor]:
    """Samples of three classes in float64 with one-hot targets."""
    inputs = torch.randn(3, each, 1, 6, 6, generator=generator(seed, "objectives"), dtype=torch.float64)
    return inputs, functional.one_hot(torch.arange(3), 3).double()[:, None].expand(-1, each, -1)


def network() -> nn.Module:
    # Without ReLU the network is smooth, so that finite differences mean something everywhere.
    net = networks.build("convnet:width=3,depth=1", digits_like(9, size=6, classes=3), seed=2).double()
    body = net.get_submodule("body")
    assert isinstance(body, nn.Sequential)
    body[2] = nn.Softplus()
    return net


def look(net: nn.Module, inputs: Tensor, targets: Tensor) -> View:
    return view_gradients(net, matched_layers(net, head=True), inputs, targets)


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_zero_where_synthetic_samples_are_the_real_ones(name: str) -> None:
    net, (inputs, targets) = network(), samples(4, 0)
    view = look(net, inputs, targets)
    value = BY_GRADIENT[name](view, view)
    assert value.shape == (3,)
    assert value.abs().max() < 1e-9
    other = BY_GRADIENT[name](view, look(net, *samples(4, 1)))
    assert other.min() > 1e-3


@pytest.mark.parametrize("name", BY_GRADIENT)
@pytest.mark.parametrize("light", [False, True])
def test_derivatives_are_finite_differences(name: str, light: bool) -> None:
    net, real = network(), samples(5, 0)
    net = lightened(net) if light else net
    first = look(net, *real)
    start, targets = samples(2, 1)
    objective = partial(BY_GRADIENT[name], first)
    value, direction = slope(objective, look(net, start, targets))
    torch.testing.assert_close(value, objective(look(net, start, targets)).sum())
    point = start.clone().requires_grad_()
    change = along(net, matched_layers(net, head=True), point, targets, direction)
    [gradient] = torch.autograd.grad(change, point)
    check_gradient(lambda inputs: objective(look(net, inputs, targets)).sum(), start, gradient)


def check_derivative(value: Callable[[Tensor], Tensor], start: Tensor) -> None:
    """Directional derivatives by automatic differentiation against central differences."""
    point = start.clone().requires_grad_()
    [gradient] = torch.autograd.grad(value(point), point)
    check_gradient(value, start, gradient)


def check_gradient(value: Callable[[Tensor], Tensor], start: Tensor, gradient: Tensor) -> None:
    """Directional derivatives against central differences."""
    for seed in range(3):
        direction = torch.randn(start.shape, generator=generator(seed, "direction"), dtype=torch.float64)
        step = 1e-5
        difference = (value(start + step * direction) - value(start - step * direction)) / (2 * step)
        torch.testing.assert_close((gradient * direction).sum(), difference.detach(), rtol=2e-5, atol=1e-7)


def test_mean_features_match_their_definition_and_differences() -> None:
    net, (real, targets) = network(), samples(5, 0)
    start, own = samples(2, 1)

    def view(inputs: Tensor, targets: Tensor) -> View:
        return view_features(net, inputs, targets)

    first = view(real, targets)
    means = [[net.get_submodule("body")(part).mean(0) for part in inputs] for inputs in (real, start)]
    expected = torch.stack([(a - b).square().sum() for a, b in zip(*means, strict=True)])
    torch.testing.assert_close(objectives.means_of_features(first, view(start, own)), expected)
    assert objectives.means_of_features(first, first).max() == 0
    check_derivative(lambda inputs: objectives.means_of_features(first, view(inputs, own)).sum(), start)


def test_ridge_regression_is_its_formula_and_differentiates() -> None:
    (real, targets), (start, own) = samples(4, 0), samples(2, 1)
    flat = [part.flatten(0, 1) for part in (real, start)]
    gram, cross = (kernels.dense_kernel(part, flat[1], depth=2) for part in (flat[1], flat[0]))
    ridge = 1e-2 * gram.diagonal().mean() * torch.eye(6, dtype=torch.float64)
    labels = [part.flatten(0, 1) - 1 / 3 for part in (targets, own)]
    wrong = labels[0] - cross @ torch.linalg.inv(gram + ridge) @ labels[1]
    value = RIDGE(View(real, targets), View(start, own))
    torch.testing.assert_close(value, wrong.square().sum(1).mean().reshape(1) / 2)
    check_derivative(lambda inputs: RIDGE(View(real, targets), View(inputs, own)).sum(), start)


def test_ridge_regression_falls_to_nothing_where_the_support_is_the_data() -> None:
    inputs, targets = samples(3, 0)
    view = View(inputs, targets)
    tight = partial(objectives.ridge_regression, kernel=partial(kernels.dense_kernel, depth=2), ridge=1e-9)
    assert float(tight(view, view)) < 1e-9
    assert torch.isfinite(RIDGE(view, view)).all(), "aligned pairs have a finite derivative"


@pytest.mark.parametrize("each", [1, 4])
def test_variances_are_those_of_per_sample_gradients(each: int) -> None:
    net, (inputs, targets) = network(), samples(each, 3)
    head = net.get_submodule("head")
    assert isinstance(head, nn.Linear)
    view = look(net, inputs, targets)
    for index in range(3):
        rows = []
        for sample, target in zip(inputs[index], targets[index], strict=True):
            loss = functional.cross_entropy(net(sample[None]), target[None])
            weight, bias = torch.autograd.grad(loss, [head.weight, head.bias])
            rows.append(torch.cat([weight, bias[:, None]], 1))
        expected = torch.stack(rows).var(0, correction=0)
        found = gradient_variances(view.residuals[index], view.head_inputs[index])
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-14)


def test_the_cosine_form_is_the_sum_over_outputs_and_ignores_length() -> None:
    first = torch.randn(2, 3, 5, generator=generator(0), dtype=torch.float64)
    second = torch.randn(2, 3, 5, generator=generator(1), dtype=torch.float64)
    empty = torch.zeros(2, 1)
    view, other, longer = (View(empty.double(), empty, gradients=(part,)) for part in (first, second, 7 * second))
    expected = (1 - torch.cosine_similarity(first, second, dim=-1)).sum(-1)
    torch.testing.assert_close(objectives.gradients_by_cosine(view, other), expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        objectives.gradients_by_cosine(view, longer), objectives.gradients_by_cosine(view, other), rtol=1e-4, atol=1e-5
    )


def test_rho_weighs_the_variances() -> None:
    net = network()
    first, second = look(net, *samples(4, 0)), look(net, *samples(4, 1))
    plain = objectives.curvature(first, second, rho=0.0)
    torch.testing.assert_close(plain, objectives.gradients_by_square(first, second))
    expected = plain + 0.15 * objectives.head_variances(first, second)
    torch.testing.assert_close(objectives.curvature(first, second, rho=0.3), expected)
