"""Loss-curvature matching, the method that lcmat is named after."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lcmat.linear_head import Factors, factors, hessian_columns, hessian_variances, top_coordinates
from lcmat.selection.distances import Gradients, measure_mean_of_points
from lcmat.selection.greedy import facility_location
from lcmat.selection.lazy import Purse
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "lcmat-s",
    "covers gradients and loss curvature together: the paper's method",
    facts=SelectorFacts(
        needs=("features", "logits", "labels"),
        reference="Shin et al., Loss-curvature matching for dataset selection and condensation, AISTATS 2023",
        cost="O(n² (C + d + K)) time and O(n²) memory with the distances cached, else O(n (d + K)) memory",
        weighted=True,
        several_points=True,
        regression=True,
    ),
)
def lcmat_s(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    coverage: float | None = None,
    given: Tensor | None = None,
    purse: Purse | None = None,
    rho: float = 0.1,
    subdimensions: int | None = 100,
    temperature: float = 1.0,
) -> Picks:
    """Facility location with D_ij = ‖g_i − g_j‖₂ + (ρ/2) Σ_{k ∈ K} |λ_ik − λ_jk|.

    With r = p − y, s = p(1 − p) and a = [f, 1], g = r ⊗ a is the last layer's per-sample gradient and λ = s ⊗ a² its
    Hessian's diagonal; K holds the coordinates whose λ varies most over the group. Several parameter points give
    Σ_p D^p / mean(D^p).

    Args:
        points: the Signals of one group at each parameter point.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        memory: bytes that the distances may take.
        coverage: stop when 1 − L(S)/L({first pick}) reaches this.
        given: samples that are picked already.
        purse: costs and a budget instead of the count.
        rho: ρ, the radius of the parameter ball; 0 leaves gradient matching alone.
        subdimensions: how many coordinates K holds; None takes all C(d+1).
        temperature: τ, with which p = softmax(z/τ).

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.eye(3), logits=-torch.eye(3), labels=torch.tensor([0, 1, 1]))
        >>> picks = lcmat_s([signals], 2, generator=torch.Generator().manual_seed(0), memory=1000)
        >>> len(picks.order), float(picks.weigh(2).sum())
        (2, 3.0)
    """
    if not (math.isfinite(rho) and rho >= 0):
        raise ValueError(f"expected rho of 0 or more, got {rho}; the paper uses 0.01 to 0.5")
    if subdimensions is not None and subdimensions < 1:
        raise ValueError(f"expected subdimensions of 1 or more, or none for all, got {subdimensions}")
    heads = [factors(signals, temperature=temperature) for signals in points]
    pairs = [Gradients(head, _scaled_curvature(head, rho, subdimensions)) for head in heads]
    distances = measure_mean_of_points(pairs, memory=memory)
    return facility_location(distances, count, generator=generator, coverage=coverage, given=given, purse=purse)


def _scaled_curvature(head: Factors, rho: float, subdimensions: int | None) -> Tensor | None:
    """The Hessian's columns in K times ρ/2, `[n, K]`."""
    if rho == 0:
        return None
    coordinates = top_coordinates(hessian_variances(head), subdimensions)
    return hessian_columns(head, coordinates).mul_(rho / 2)
