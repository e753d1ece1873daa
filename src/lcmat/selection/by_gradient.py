"""Methods that match the last layer's gradients."""

from collections.abc import Sequence

import torch

from lcmat.linear_head import factors
from lcmat.selection.distances import Gradients, measure_mean_of_points
from lcmat.selection.greedy import facility_location
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
    ),
)
def craig(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    coverage: float | None = None,
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
    return facility_location(distances, count, generator=generator, coverage=coverage)
