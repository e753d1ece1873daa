"""Infinitely wide networks against a slow recursion and against wide ones."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from lcmat.condensation.kernels import convolutional_kernel, dense_kernel, with_ridge
from lcmat.seeding import generator
from reference import tangent_kernel


def points(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed, "points"), dtype=torch.float64)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_dense_kernel_is_the_slow_recursion(depth: int) -> None:
    first, second = points(3, 4), points(2, 4, seed=1)
    second[1] = 2 * first[0]
    expected = [[tangent_kernel(a, b, depth) for b in second.tolist()] for a in first.tolist()]
    found = dense_kernel(first, second, depth=depth)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-4, atol=1e-5)


class Scaled(nn.Module):
    """A layer whose weights are standard normal and divided by √fan-in; behind a ReLU times √2."""

    def __init__(self, layer: nn.Linear | nn.Conv2d, seed: int, *, first: bool) -> None:
        super().__init__()
        self.layer = layer
        fan_in = layer.weight[0].numel()
        self.scale = ((1 if first else 2) / fan_in) ** 0.5
        with torch.no_grad():
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator(seed, "weights")))

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.scale * self.layer(inputs)
        return outputs


def empirical_kernel(net: nn.Module, inputs: Tensor) -> Tensor:
    """⟨∂f(x), ∂f(x')⟩ over all weights."""
    weights = {name: weight.detach() for name, weight in net.named_parameters()}

    def output(weights: dict[str, Tensor], sample: Tensor) -> Tensor:
        result: Tensor = functional_call(net, weights, (sample[None],))[0, 0]
        return result

    rows = vmap(jacrev(output), (None, 0))(weights, inputs)
    flat = torch.cat([part.flatten(1) for part in rows.values()], 1)
    return flat @ flat.T


def mean_kernel(make: "type[nn.Module] | object", inputs: Tensor, draws: int) -> Tensor:
    return torch.stack([empirical_kernel(make(seed), inputs) for seed in range(draws)]).mean(0)  # type: ignore[operator]


def test_dense_kernel_is_that_of_wide_networks() -> None:
    inputs = points(4, 5).float()

    def make(seed: int) -> nn.Module:
        sizes = [(5, 1024), (1024, 1024), (1024, 1)]
        layers = [Scaled(nn.Linear(*size, bias=False), 10 * seed + i, first=i == 0) for i, size in enumerate(sizes)]
        return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])

    expected = mean_kernel(make, inputs, 6)
    # The layers' own parametrisation has its scale in front of the weights, so that each contributes as in the limit.
    torch.testing.assert_close(dense_kernel(inputs, inputs, depth=2), expected, rtol=0.1, atol=0.05)


def test_convolutional_kernel_is_that_of_wide_networks() -> None:
    inputs = points(3, 2, 4, 4).float()

    def make(seed: int) -> nn.Module:
        layers: list[nn.Linear | nn.Conv2d] = [
            nn.Conv2d(2, 128, 3, padding=1, bias=False),
            nn.Conv2d(128, 128, 3, padding=1, bias=False),
            nn.Linear(128 * 16, 1, bias=False),
        ]
        first, second, last = (Scaled(layer, 10 * seed + i, first=i == 0) for i, layer in enumerate(layers))
        return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Flatten(), last)

    expected = mean_kernel(make, inputs, 8)
    torch.testing.assert_close(convolutional_kernel(inputs, inputs, depth=2), expected, rtol=0.1, atol=0.03)


@pytest.mark.parametrize("kernel", [dense_kernel, convolutional_kernel])
def test_kernels_are_symmetric_and_positive(kernel: object) -> None:
    inputs = points(8, 1, 3, 3)
    inputs[5] = inputs[2]
    gram = kernel(inputs, inputs, depth=3)  # type: ignore[operator]
    torch.testing.assert_close(gram, gram.T)
    assert torch.equal(gram[5], gram[2])
    assert torch.linalg.eigvalsh(gram).min() > -1e-9
    assert torch.linalg.eigvalsh(with_ridge(gram, 1e-3)).min() > 1e-5


def test_derivative_is_finite_at_aligned_points() -> None:
    inputs = points(3, 4).requires_grad_()
    dense_kernel(inputs, inputs, depth=3).sum().backward()
    assert inputs.grad is not None
    assert torch.isfinite(inputs.grad).all()
