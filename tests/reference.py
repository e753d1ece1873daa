"""Slow and obvious truth, in float64: automatic differentiation and brute force, for tests alone."""

from collections.abc import Callable
from itertools import combinations

import torch
from torch import Tensor

from lcmat.types import Signals


def _head_loss(weights: Tensor, inputs: Tensor, label: int, classes: int, temperature: float = 1.0) -> Tensor:
    logits = weights.reshape(classes, -1) @ inputs
    return torch.nn.functional.cross_entropy(logits[None] / temperature, torch.tensor([label]))


def made_up_signals(
    n: int = 40, classes: int = 4, d: int = 6, *, seed: int = 0, bias: bool = True
) -> tuple[Signals, Tensor]:
    """Signals whose logits really come from a linear head, and that head's weights `[C, d+1]`."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, d, generator=generator, dtype=torch.float64).abs()
    weights = torch.randn(classes, d + bias, generator=generator, dtype=torch.float64)
    inputs = torch.cat([features, torch.ones(n, 1, dtype=torch.float64)], 1) if bias else features
    labels = torch.randint(classes, (n,), generator=generator)
    return Signals(features=features, logits=inputs @ weights.T, labels=labels, bias=bias), weights


def per_sample_gradients(signals: Signals, weights: Tensor) -> Tensor:
    """Every sample's gradient in the head's weights by automatic differentiation, `[n, C·(d+1)]`."""
    return torch.stack([torch.autograd.functional.jacobian(f, weights.flatten()) for f in _losses(signals, weights)])


def hessian_diagonals(signals: Signals, weights: Tensor) -> Tensor:
    """Every sample's Hessian diagonal by automatic differentiation, `[n, C·(d+1)]`."""
    return torch.stack(
        [torch.autograd.functional.hessian(f, weights.flatten()).diagonal() for f in _losses(signals, weights)]
    )


def _losses(signals: Signals, weights: Tensor) -> list[Callable[[Tensor], Tensor]]:
    features, labels = signals.need("features"), signals.need("labels")
    classes = len(weights)

    def loss_of(i: int) -> Callable[[Tensor], Tensor]:
        inputs = torch.cat([features[i], features.new_ones(1)]) if signals.bias else features[i]
        return lambda flat: _head_loss(flat, inputs, int(labels[i]), classes)

    return [loss_of(i) for i in range(signals.n)]


def lcmat_distances(signals: Signals, *, rho: float, subdimensions: int | None, temperature: float = 1.0) -> Tensor:
    """The paper's D_ij with everything of size n × C(d+1) built, one pair at a time, `[n, n]` in float64."""
    features, labels = signals.need("features").double(), signals.need("labels")
    inputs = torch.cat([features, torch.ones(signals.n, 1, dtype=torch.float64)], 1) if signals.bias else features
    p = torch.softmax(signals.need("logits").double() / temperature, 1)
    residuals = p - torch.eye(p.shape[1], dtype=torch.float64)[labels]
    gradients = (residuals[:, :, None] * inputs[:, None, :]).reshape(signals.n, -1)
    hessians = ((p * (1 - p))[:, :, None] * inputs.square()[:, None, :]).reshape(signals.n, -1)
    count = hessians.shape[1] if subdimensions is None else min(subdimensions, hessians.shape[1])
    kept = hessians[:, hessians.var(0, correction=0).argsort(descending=True)[:count]]
    distances = torch.zeros(signals.n, signals.n, dtype=torch.float64)
    for i in range(signals.n):
        gradient_part = (gradients[i] - gradients).norm(dim=1)
        curvature_part = (kept[i] - kept).abs().sum(1)
        distances[i] = gradient_part + rho / 2 * curvature_part
    return distances


def cover_loss(distances: Tensor, picks: list[int]) -> float:
    """L(S) = Σ_i min_{j ∈ S} D_ij."""
    return float(distances[picks].double().min(0).values.sum())


def best_cover_loss(distances: Tensor, count: int) -> float:
    """The smallest L of any set of this size, by trying them all."""
    return min(cover_loss(distances, list(picks)) for picks in combinations(range(len(distances)), count))


def largest_regret(distances: Tensor, picks: list[int]) -> float:
    """How much any pick's gain falls short of the best gain at its turn, at most: 0 for an exact greedy run."""
    nearest = torch.full((len(distances),), float(distances.max()), dtype=torch.float64)
    regret = 0.0
    for pick in picks:
        gains = (nearest - distances.double()).clamp(min=0).sum(1)
        regret = max(regret, float(gains.max() - gains[pick]))
        nearest = torch.minimum(nearest, distances[pick].double())
    return regret


def plain_greedy(distances: Tensor, count: int) -> tuple[list[int], list[float]]:
    """Greedy facility location as one would write it on a blackboard: picks and gains."""
    n = len(distances)
    extended = distances.double()
    auxiliary = torch.full((n,), float(distances.max()), dtype=torch.float64)
    picks: list[int] = []
    gains: list[float] = []
    for _ in range(count):
        nearest = torch.stack([auxiliary, *extended[picks]]).min(0).values
        options = [
            (float((nearest - torch.minimum(nearest, extended[j])).sum()), -j) for j in range(n) if j not in picks
        ]
        gain, negative = max(options)
        picks.append(-negative)
        gains.append(gain)
    return picks, gains


def class_gradients(net: torch.nn.Module, weights: list[Tensor], inputs: Tensor, targets: Tensor) -> list[Tensor]:
    """Class by class, the gradient of the mean loss in each weight, `[K, out, in]`, which can be differentiated.

    Args:
        net: any network.
        weights: of some of its layers.
        inputs: `[K, b, ...]`.
        targets: distributions, `[K, b, C]`.
    """
    rows = []
    for own, wanted in zip(inputs, targets, strict=True):
        loss = torch.nn.functional.cross_entropy(net(own), wanted)
        rows.append([gradient.flatten(1) for gradient in torch.autograd.grad(loss, weights, create_graph=True)])
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def tangent_kernel(first: list[float], second: list[float], depth: int) -> float:
    """The NTK of two points by its definition, with the expectations over Gaussians worked out on a grid of angles."""
    size = len(first)
    variances = [sum(a * a for a in first) / size, sum(b * b for b in second) / size]
    covariance = sum(a * b for a, b in zip(first, second, strict=True)) / size
    tangent = covariance
    for _ in range(depth):
        product, slope = _gaussian_means(variances[0], variances[1], covariance)
        covariance = 2 * product
        tangent = covariance + tangent * 2 * slope
    return tangent


def _gaussian_means(first: float, second: float, covariance: float) -> tuple[float, float]:
    """E relu(u)relu(v) and E 1[u > 0]1[v > 0] for a Gaussian pair, in polar coordinates.

    With u = s·r·cos t and v = S·r·cos(t − φ), r² has mean 2 and t is uniform, so that sums over t are all there is.
    """
    scale = (first * second) ** 0.5
    angle = torch.acos(torch.tensor(max(-1.0, min(1.0, covariance / scale)), dtype=torch.float64))
    turns = (torch.arange(400_000, dtype=torch.float64) + 0.5) / 400_000 * 2 * torch.pi
    u, v = turns.cos(), (turns - angle).cos()
    both = (u > 0) & (v > 0)
    return float(2 * scale * (u * v * both).mean()), float(both.double().mean())
