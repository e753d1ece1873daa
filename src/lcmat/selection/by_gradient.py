"""Methods that match the last layer's gradients."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lcmat.linear_head import Factors, factors
from lcmat.selection.distances import Gradients, measure_mean_of_points
from lcmat.selection.greedy import facility_location
from lcmat.selection.lazy import Purse
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "craig",
    "covers the last layer's gradients by facility location",
    facts=SelectorFacts(
        needs=("features", "logits", "labels"),
        reference="Mirzasoleiman, Bilmes and Leskovec, Coresets for data-efficient training, ICML 2020",
        cost="O(n² (C + d)) time and O(n²) memory with the distances cached, else O(n d) memory",
        weighted=True,
        several_points=True,
        regression=True,
    ),
)
def craig(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    coverage: float | None = None,
    given: Tensor | None = None,
    purse: Purse | None = None,
) -> Picks:
    """Facility location with D_ij = ‖g_i − g_j‖₂, g = (p − y) ⊗ [f, 1] the last layer's per-sample gradient.

    The weight of a pick is the number of samples it is nearest to.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.eye(3), logits=-torch.eye(3), labels=torch.tensor([0, 1, 1]))
        >>> picks = craig([signals], 2, generator=torch.Generator().manual_seed(0), memory=1000)
        >>> len(picks.order), float(picks.weigh(2).sum())
        (2, 3.0)
    """
    pairs = [Gradients(factors(signals)) for signals in points]
    distances = measure_mean_of_points(pairs, memory=memory)
    return facility_location(distances, count, generator=generator, coverage=coverage, given=given, purse=purse)


@SELECTORS.add(
    "adacore",
    "covers the last layer's gradients, preconditioned with the inverse Hessian diagonal, by facility location",
    facts=SelectorFacts(
        needs=("features", "logits", "labels"),
        reference="Pooladzandi, Davini and Mirzasoleiman, Adaptive second order coresets, ICML 2022",
        cost="O(n² (C + d)) time and O(n²) memory with the distances cached, else O(n d) memory",
        weighted=True,
        several_points=True,
        regression=True,
    ),
)
def adacore(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    coverage: float | None = None,
    given: Tensor | None = None,
    purse: Purse | None = None,
    damping: float = 0.1,
) -> Picks:
    """Facility location with D_ij = ‖h_i − h_j‖₂, h = H⁻¹g with H the last layer's per-sample Hessian diagonal.

    From factors, g/H = (r ⊗ a)/(s ⊗ a²) = (r/s) ⊗ (1/a). As s = |r| (1 − |r|), r/s is −1/p_y for the true class and
    1/(1 − p_c) for the others: of size 1 for a fitted sample and only large for a badly misclassified one, so it is
    cut at 1/δ. But 1/a has no bound where a feature is near 0, and there the gradient vanishes too. It is damped as in
    Levenberg and Marquardt's step, a/(a² + δ²), which follows 1/a for large a and goes to 0 with a; a is taken in
    units of the features' root mean square, which only scales all distances.

    The weight of a pick is the number of samples it is nearest to.

    Args:
        points: the Signals of one group at each parameter point.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        memory: bytes that the distances may take.
        coverage: stop when 1 − L(S)/L({first pick}) reaches this.
        given: samples that are picked already.
        purse: costs and a budget instead of the count.
        damping: δ, the smallest probability and the smallest feature, in its unit, that still count in full.

    Example:
        >>> signals = Signals(features=torch.eye(3), logits=-torch.eye(3), labels=torch.tensor([0, 1, 1]))
        >>> picks = adacore([signals], 2, generator=torch.Generator().manual_seed(0), memory=1000)
        >>> len(picks.order), float(picks.weigh(2).sum())
        (2, 3.0)
    """
    if not 0 < damping <= 1:
        raise ValueError(f"expected a damping above 0 and at most 1, got {damping}; 0.1 is usual")
    pairs = [Gradients(_preconditioned(signals, damping)) for signals in points]
    distances = measure_mean_of_points(pairs, memory=memory)
    return facility_location(distances, count, generator=generator, coverage=coverage, given=given, purse=purse)


def _preconditioned(signals: Signals, damping: float) -> Factors:
    """The factors of H⁻¹g, worked out in float64: r/s in place of r, 1/a in place of a, both damped."""
    head = factors(signals)
    ratios = signals.residuals
    if not signals.regression:  # else s = 1
        # The sign is that of the limit where a residual vanishes: −1 for the true class, +1 for the others.
        signs = 1 - 2 * torch.nn.functional.one_hot(signals.need("labels"), ratios.shape[1])
        ratios = signs / (1 - ratios.abs()).clamp(min=damping)
    inputs = head.inputs.double()
    unit = signals.need("features").double().square().mean().sqrt()
    inputs = inputs / unit if unit > 0 else inputs
    inverses = inputs / (inputs.square() + damping**2)
    return replace(head, residuals=ratios.to(head.residuals.dtype), inputs=inverses.to(head.inputs.dtype))
