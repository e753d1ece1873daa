"""Farthest first: cover all samples with balls as small as one can (Gonzalez, 1985)."""

import torch
from torch import Tensor

from lcmat.runtime import one_thread
from lcmat.selection.distances import Rows
from lcmat.selection.ties import Ties
from lcmat.types import Picks


def farthest_first(rows: Rows, count: int, *, first: int, ties: Ties, given: Tensor | None = None) -> Picks:
    """Pick again and again the sample farthest from all picks: a cover within twice the best radius.

    Only the running minimum is kept. A pick's gain is its distance to the earlier picks; the first one's is the
    radius it leaves. Samples that are given come first, in their order, and `first` is then without effect.

    No pick is waited for: on a GPU the kernels of one follow on those of the last.

    Args:
        rows: the distances of one sample to all.
        count: how many to pick.
        first: the first pick.
        ties: decide between equally far samples.
        given: samples that are picked already, `[g]`.

    Example:
        >>> from lcmat.selection.distances import from_matrix
        >>> points = torch.tensor([0.0, 1.0, 2.0, 9.0])
        >>> ties = Ties(4, torch.Generator().manual_seed(0), torch.device("cpu"))
        >>> farthest_first(from_matrix((points[:, None] - points).abs()), 3, first=1, ties=ties).gains.tolist()
        [8.0, 8.0, 1.0]
    """
    settled = torch.tensor([first], device=rows.device) if given is None else given.to(rows.device)
    order = torch.empty(count, dtype=torch.int64, device=rows.device)
    gains = torch.empty(count, dtype=torch.float64, device=rows.device)
    pick, nearest = settled[:1], rows.of(settled[:1])[0]
    gains[0] = nearest.max()
    with one_thread():
        for t in range(count):
            if t > 0:
                pick = settled[t : t + 1] if t < len(settled) else ties.best(nearest)
                gains[t] = nearest.index_select(0, pick)[0]
                torch.minimum(nearest, rows.of(pick)[0], out=nearest)
            order[t] = pick[0]
            # A picked sample lies at distance 0 and so do its duplicates: below them all, it is never picked again.
            nearest.index_fill_(0, pick, -1.0)
    return Picks(order, gains)
