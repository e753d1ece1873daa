"""Checks that more than one type makes."""

import torch
from torch import Tensor


def look_like_probabilities(logits: Tensor, *, within: float) -> bool:
    """Whether logits `[n, C]` are softmax outputs by all that can be seen: not negative, and every row sums to one.

    Args:
        logits: to look at.
        within: how far a sum may be from one.
    """
    values = logits.detach()
    if values.shape[1] < 2 or not bool(values.min() >= 0):
        return False
    return torch.allclose(values.sum(1), values.new_ones(()), atol=within)


def check_finite(name: str, values: Tensor) -> None:
    """Refuse NaN and infinities, naming the first bad row."""
    if values.numel() == 0:
        return
    # One pass without a temporary: NaN and infinities reach the extremes.
    lowest, highest = torch.aminmax(values.detach())
    if not (torch.isfinite(lowest) and torch.isfinite(highest)):
        bad = ~torch.isfinite(values)
        rows = bad.reshape(len(values), -1).any(1).nonzero().flatten()
        raise ValueError(
            f"expected finite {name}, got NaN or infinity in {len(rows):,} of {len(values):,} rows, "
            f"the first at row {int(rows[0])}; clean the data or check the model"
        )
