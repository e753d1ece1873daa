"""A method that picks the method, and says which and why."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lcmat.selection.by_chance import uniform
from lcmat.selection.by_geometry import prototypes
from lcmat.selection.by_submodular import facility_location_of_features
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals

ALL_PAIRS_LIMIT = 20_000  # samples of a group up to which going over all pairs takes seconds
CLUSTERING_LIMIT = 2 * 10**9  # samples × picks up to which k-means takes minutes
LARGE_SHARE = 0.3  # above this, no method was found to beat a random draw by more than the noise


@SELECTORS.add(
    "auto",
    "chooses among facility-location, prototypes and uniform by size and share, and notes which and why",
    facts=SelectorFacts(
        needs=("features",),
        reference="the measurements in docs/results",
        cost="that of the chosen method",
        weighted=True,
        prefix=False,
        several_points=True,
        random=True,
        regression=True,
        path=(0.1, 0.2, 0.4, 0.7, 1.0),
    ),
)
def auto(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    coverage: float | None = None,
    given: Tensor | None = None,
) -> Picks:
    """Cover the features where that is affordable and known to help, else draw at random.

    Up to 30 % of a group: `facility-location` on the features of all parameter points where its n² pairs are
    affordable, `prototypes` on those of the last point where only k-means is. Beyond either, `uniform`. A coverage to
    be reached leaves `facility-location` alone.

    Example:
        >>> signals = Signals(features=torch.arange(10.0)[:, None])
        >>> picks = auto([signals], 2, generator=torch.Generator().manual_seed(0), memory=1000)
        >>> picks.note
        'auto chose facility-location: it covers all features, and going over all pairs is affordable'
    """
    n = points[0].n
    settled = torch.empty(0, dtype=torch.int64) if given is None else given.cpu()
    if coverage is not None or (count <= LARGE_SHARE * n and n <= ALL_PAIRS_LIMIT):
        picks = facility_location_of_features(
            points, count, generator=generator, memory=memory, coverage=coverage, given=given
        )
        why = "it covers all features, and going over all pairs is affordable"
        reason = f"facility-location: {why if coverage is None else 'a coverage is to be reached'}"
    elif count <= LARGE_SHARE * n and n * count <= CLUSTERING_LIMIT and len(settled) == 0:
        picks = prototypes(points[-1:], count, generator=generator)
        reason = f"prototypes: it covers all features, and {n:,} samples in a group are many for all pairs"
    else:
        drawn = uniform(points, n, generator=generator).order
        order = torch.cat([settled, drawn[~torch.isin(drawn, settled)]])[:count]
        picks = Picks(order, weigh=lambda k: torch.full((k,), n / k, dtype=torch.float64))
        reason = "uniform: for so large a share or so many samples no method here is known to repay its cost"
    return replace(picks, note=f"auto chose {reason}")
