"""The one top-k: the samples of highest score are kept."""

import torch
from torch import Tensor

from lcmat.selection.ties import Ties
from lcmat.types import Picks


def keep_highest(scores: Tensor, count: int, *, generator: torch.Generator) -> Picks:
    """The `count` samples of highest score, the highest first; ties fall to the first in a seeded permutation.

    Many scores are small integers or saturate, so that most samples tie: without the permutation the order of the data
    set would pick the subset.

    Args:
        scores: one for each sample, `[n]`.
        count: how many to keep.
        generator: orders the samples for breaking ties.

    Returns:
        Picks whose gains are their scores.

    Example:
        >>> scores = torch.tensor([0.1, 0.9, 0.5])
        >>> keep_highest(scores, 2, generator=torch.Generator().manual_seed(0)).order.tolist()
        [1, 2]
    """
    scores = scores.double()
    if not torch.isfinite(scores).all():
        raise ValueError(
            "expected finite scores, got NaN or infinity: the features or logits are too large; scale them"
        )
    order = Ties(len(scores), generator, scores.device).descending(scores)[:count]
    return Picks(order, gains=scores[order])
