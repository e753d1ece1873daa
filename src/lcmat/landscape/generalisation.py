"""The terms of the paper's Theorem 1 and Corollary 1 that can be computed, beside the assumptions that they rest on.

With σ = ρ/(√k + √log n), so that ‖ε‖ ≤ ρ with probability at least 1 − 1/√n for ε ~ N(0, σ²I), the proof gives

    E|L(D; θ + ε) − L(S; θ + ε)| ≤ max_{‖ε‖ ≤ ρ} L_abs(T, S; θ + ε) + l_max/√n
                                    + √((¼ k log(1 + ‖θ‖²/(kσ²)) + ¼ + log(n/δ) + 2 log(6n + 3k))/(n − 1)).
"""

import math
from dataclasses import dataclass
from statistics import fmean, stdev

import torch
from torch import nn

from lcmat import seeding
from lcmat.landscape.network_gap import NetworkGap, Parameters
from lcmat.landscape.samples import Pool


@dataclass(frozen=True)
class Mean:
    """A mean over random draws with its standard error."""

    value: float
    error: float
    n: int


@dataclass(frozen=True)
class Generalisation:
    """Theorem 1 and Corollary 1 for one reduced set, with the test set in the place of the population D.

    Attributes:
        name: of the set.
        k: parameters.
        n: samples of T.
        delta: δ.
        rho: ρ.
        sigma: σ = ρ/(√k + √log n).
        norm: ‖θ‖₂.
        complexity: the square root in the bound.
        training_loss: L(T; θ).
        test_loss: L(D; θ).
        in_range: L(T; θ) ≤ L(D; θ), θ ∈ Θ̂.
        in_range_nearby: share of the draws of ε at which L(T; θ + ε) ≤ L(D; θ + ε), which the proof uses too.
        gap_train: L_abs(T, S; θ).
        gap_test: L_abs(D, S; θ).
        corollary_applies: L_abs(T, S; θ) ≤ L_abs(D, S; θ).
        expected: E|L(D; θ + ε) − L(S; θ + ε)| over draws of ε, the left side of the theorem.
        highest: max L_abs(T, S; θ + ε) over the ball, from below.
        restrained: ‖θ‖² ≤ σ²(exp(4n/k) − 1), outside of which the bound holds because it exceeds 1.
    """

    name: str
    k: int
    n: int
    delta: float
    rho: float
    sigma: float
    norm: float
    complexity: float
    training_loss: float
    test_loss: float
    in_range: bool
    in_range_nearby: float
    gap_train: float
    gap_test: float
    corollary_applies: bool
    expected: Mean
    highest: float
    restrained: bool

    @property
    def bounded_loss(self) -> bool:
        """Whether the loss has the upper bound that PAC-Bayes assumes: cross-entropy has none, so l_max is infinite."""
        return False

    @property
    def vacuous(self) -> bool:
        """Whether the square root alone exceeds 1, the largest value of a loss in [0, 1]."""
        return self.complexity >= 1

    @property
    def right_side(self) -> float:
        """The right side of the theorem without l_max/√n."""
        return self.highest + self.complexity

    @property
    def corollary_left(self) -> float:
        """(E L_abs(D, S; θ + ε) − L_abs(D, S; θ))/ρ."""
        return (self.expected.value - self.gap_test) / self.rho

    @property
    def corollary_right(self) -> float:
        """Sharpness plus the square root over ρ; the paper drops the ρ under the root."""
        return (self.highest - self.gap_train + self.complexity) / self.rho


def noise_scale(rho: float, k: int, n: int) -> float:
    """σ for which ‖ε‖ ≤ ρ = σ(√k + √log n) with probability at least 1 − 1/√n (Laurent and Massart, 2000).

    Example:
        >>> round(noise_scale(0.1, 10_000, 50_000), 6)
        0.000968
    """
    return rho / (math.sqrt(k) + math.sqrt(math.log(n)))


def complexity(norm: float, k: int, n: int, sigma: float, delta: float) -> float:
    """√((¼ k log(1 + ‖θ‖²/(kσ²)) + ¼ + log(n/δ) + 2 log(6n + 3k))/(n − 1)).

    Example:
        >>> round(complexity(0.0, 1, 2, 1.0, 1.0), 4)  # √(¼ + log 2 + 2 log 15)
        2.5218
    """
    spread = 0.25 * k * math.log1p(norm**2 / (k * sigma**2))
    return math.sqrt((spread + 0.25 + math.log(n / delta) + 2 * math.log(6 * n + 3 * k)) / (n - 1))


def generalise(
    model: nn.Module,
    pool: Pool,
    test: Pool,
    name: str,
    *,
    n: int,
    rho: float,
    highest: float,
    device: torch.device,
    delta: float = 0.05,
    draws: int = 20,
    seed: int = 0,
) -> Generalisation:
    """The theorem's terms for one reduced set, for all parameters of the model.

    Args:
        model: in evaluation mode.
        pool: samples of T and of the set.
        test: test samples as its T, without reduced sets.
        name: of the set in the pool.
        n: |T|, of which the pool may hold a part.
        rho: ρ.
        highest: the largest L_abs that was found in the ball.
        device: where to compute.
        delta: δ; the theorem holds with probability 1 − δ.
        draws: of ε for the expectation.
        seed: of the draws.

    Raises:
        ValueError: for a single sample or a delta outside of (0, 1).
    """
    if n < 2 or not 0 < delta < 1:
        raise ValueError(f"expected at least 2 samples and a delta between 0 and 1, got {n} and {delta}")
    if draws < 2:
        raise ValueError(f"expected at least 2 draws, got {draws}")
    losses = [
        NetworkGap(model, part.data, part.targets, shares, device)
        for part, shares in ((pool, pool.full), (pool, pool.reduced[name]), (test, test.full))
    ]
    parameters = Parameters(model, device)
    k, norm = parameters.size, float(parameters.join(parameters.values).double().norm())
    sigma = noise_scale(rho, k, n)
    centre = torch.zeros(k, dtype=parameters.dtype, device=device)
    train, kept, unseen = (loss.value(centre) for loss in losses)
    generator = seeding.generator(seed, "generalisation")
    gaps, below = [], 0
    for _ in range(draws):
        shift = sigma * torch.randn(k, generator=generator, dtype=torch.float64).to(centre)
        moved_train, moved_kept, moved_unseen = (loss.value(shift) for loss in losses)
        gaps.append(abs(moved_unseen - moved_kept))
        below += moved_train <= moved_unseen
    return Generalisation(
        name=name,
        k=k,
        n=n,
        delta=delta,
        rho=rho,
        sigma=sigma,
        norm=norm,
        complexity=complexity(norm, k, n, sigma, delta),
        training_loss=train,
        test_loss=unseen,
        in_range=train <= unseen,
        in_range_nearby=below / draws,
        gap_train=abs(train - kept),
        gap_test=abs(unseen - kept),
        corollary_applies=abs(train - kept) <= abs(unseen - kept),
        expected=Mean(fmean(gaps), stdev(gaps) / math.sqrt(draws), draws),
        highest=highest,
        restrained=_restrained(norm, sigma, n, k),
    )


def _restrained(norm: float, sigma: float, n: int, k: int) -> bool:
    exponent = 4 * n / k
    # exp(700) is near the largest number there is; the condition then holds for any network.
    return exponent > 700 or norm**2 <= sigma**2 * math.expm1(exponent)
