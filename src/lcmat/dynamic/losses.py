"""The losses of an epoch, as they are recorded batch by batch."""

import math

import torch
from torch import Tensor

from lcmat.dynamic.ranks import Ranks
from lcmat.dynamic.schedule import Losses


class LossTable:
    """Collects losses without waiting for the device that computes them, and adds them up at the end of an epoch."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._parts: list[tuple[Tensor, Tensor, Tensor | None]] = []

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, rows: Tensor, losses: Tensor, correct: Tensor | None) -> None:
        """Keep what a batch gave; rows `[b]` on the CPU, losses and correct `[b]` on any device."""
        # A copy: the tensor may be a buffer that the next batch fills.
        kept = None if correct is None else correct.detach().clone()
        self._parts.append((rows.clone(), losses.detach().clone(), kept))

    def close(self, ranks: Ranks) -> Losses:
        """What `peek` gives, after which the next epoch is collected."""
        losses = self.peek(ranks)
        self._parts.clear()
        return losses

    def peek(self, ranks: Ranks) -> Losses:
        """The mean loss of each sample that any rank recorded in this epoch.

        Raises:
            ValueError: for a loss that is not finite.
        """
        total = torch.zeros(3, self.n, dtype=torch.float64)  # losses, how many, of them right
        for rows, losses, correct in self._parts:
            values = losses.double().cpu()
            # A class whose probability is above one half is the most probable one.
            right = (values < math.log(2)) if correct is None else correct.cpu().bool()
            for place, part in enumerate((values, torch.ones_like(values), right.double())):
                total[place].index_add_(0, rows, part)
        total = ranks.add_up(total)
        if not bool(torch.isfinite(total).all()):
            row = int((~torch.isfinite(total[0])).nonzero()[0])
            raise ValueError(f"expected finite losses, got {float(total[0, row])} for sample {row}; did it diverge?")
        rows = (total[1] > 0).nonzero().flatten()
        losses, counts, rights = total[:, rows]
        return Losses(rows, losses / counts, 2 * rights > counts)
