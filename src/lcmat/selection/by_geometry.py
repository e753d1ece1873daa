"""Methods that look at the features alone."""

from collections.abc import Sequence

import torch

from lcmat.selection.distances import Euclidean, measure
from lcmat.selection.greedy import farthest_first
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "herding",
    "keeps the mean of the picks' features as near as it can to the mean of all",
    facts=SelectorFacts(
        needs=("features",),
        reference="Welling, Herding dynamical weights to learn, ICML 2009; as in Rebuffi et al., iCaRL, CVPR 2017",
        cost="O(k n d) time, O(n d) memory",
    ),
)
def herding(points: Sequence[Signals], count: int) -> Picks:
    """Pick t is argmin_j ‖μ − (f_j + Σ_{i ∈ S} f_i)/t‖₂ over the samples not yet picked, μ the mean feature.

    Gains are how much nearer each pick brings the mean; they can be negative.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.tensor([[0.0], [1.0], [5.0]]))
        >>> herding([signals], 2).order.tolist()
        [1, 2]
    """
    features = points[0].need("features")
    centred = features - features.mean(0)
    squares = centred.square().sum(1)
    order = torch.empty(count, dtype=torch.int64, device=features.device)
    errors = torch.empty(count + 1, dtype=torch.float64, device=features.device)
    errors[0] = squares.mean().sqrt()  # of a single random pick, on average
    total = torch.zeros_like(centred[0])
    for t in range(count):
        # ‖Σ + f_j‖² up to a constant; around the mean, μ is the origin.
        scores = torch.addmv(squares, centred, total, alpha=2)
        scores.index_fill_(0, order[:t], torch.inf)
        pick = scores.argmin().reshape(1)
        total = total + centred.index_select(0, pick)[0]
        order[t] = pick[0]
        errors[t + 1] = total.double().norm() / (t + 1)
    return Picks(order, gains=errors[:-1] - errors[1:])


@SELECTORS.add(
    "k-center",
    "covers all features with balls as small as it can: farthest first",
    facts=SelectorFacts(
        needs=("features",),
        reference="Sener and Savarese, Active learning for CNNs: a core-set approach, ICLR 2018",
        cost="O(n² d) time and O(n²) memory with the distances cached, else O(k n d) and O(n d)",
    ),
)
def k_center(points: Sequence[Signals], count: int, *, memory: int) -> Picks:
    """Start nearest to the mean, then add again and again the sample farthest from all picks.

    The radius max_i min_{j ∈ S} ‖f_i − f_j‖ is at most twice the smallest possible (Gonzalez, 1985).

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.tensor([[0.0], [1.0], [2.0], [9.0]]))
        >>> k_center([signals], 2, memory=1000).order.tolist()
        [2, 3]
    """
    pairs = Euclidean(points[0].need("features"))
    return farthest_first(measure(pairs, memory=memory), count, first=int(pairs.squares.argmin()))
