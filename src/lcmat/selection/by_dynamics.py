"""Methods that look at how the predictions moved in the first epochs of training."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lcmat.selection.ranking import keep_highest
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "dual",
    "keeps the samples that stay difficult and uncertain in the first epochs",
    facts=SelectorFacts(
        needs=("record",),
        reference="Cho et al., Lightweight dataset pruning without full training via example difficulty and prediction "
        "uncertainty, ICML 2025",
        cost="O(n (E J + log n)) time, O(n E) memory for E recorded epochs and windows of J",
        score=True,
    ),
)
def dual(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    window: int = 10,
    epochs: int | None = 30,
) -> Picks:
    """Score: the mean over windows t … t+J−1 of (1 − mean P)·std P, P the probability of the true class.

    The mean and the standard deviation (divided by J − 1) are over the J epochs of one window; the score is averaged
    over the T − J + 1 windows in the first T epochs.

    Args:
        points: the Signals of one group, with a record.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        window: J, how many epochs a window has; a shorter record is one window.
        epochs: T, how many epochs count from the first on; None takes all that the record has.

    Example:
        >>> from lcmat.types import Record
        >>> probability = torch.tensor([[0.9, 0.1, 0.1], [0.9, 0.8, 0.1], [0.9, 0.1, 0.2]])  # epochs × samples
        >>> signals = Signals(labels=torch.zeros(3).long(), record=Record(probability > 0.5, probability))
        >>> dual([signals], 2, generator=torch.Generator()).order.tolist()
        [1, 2]
    """
    if window < 2:
        raise ValueError(f"expected a window of 2 epochs or more, got {window}; the paper uses 10")
    if epochs is not None and epochs < 2:
        raise ValueError(f"expected epochs of 2 or more, or none for all, got {epochs}; the paper uses 30 on CIFAR")
    record = points[0].record
    assert record is not None  # the facts say that it is needed, and `select` has looked
    probability = record.probability[:epochs].double()
    if len(probability) < 2:
        raise ValueError("dual needs a record of 2 epochs or more, got 1: train longer with record=True")
    return keep_highest(_difficult_and_uncertain(probability, window), count, generator=generator)


def _difficult_and_uncertain(probability: Tensor, window: int) -> Tensor:
    """The DUAL score of probabilities `[T, n]`, `[n]`."""
    window = min(window, len(probability))
    total = torch.zeros_like(probability[0])
    starts = range(len(probability) - window + 1)
    for start in starts:
        spread, mean = torch.std_mean(probability[start : start + window], dim=0)
        total += (1 - mean) * spread
    return total / len(starts)
