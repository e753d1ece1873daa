"""Which sample a greedy method takes next, and the rule for ties.

Of equally good samples the one is taken that comes first in a seeded permutation, not the one that comes first in the
data.
"""

import torch
from torch import Tensor


class Ties:
    """A seeded order of n samples, in which the first of equally good ones is taken."""

    def __init__(self, n: int, generator: torch.Generator, device: torch.device) -> None:
        self.permutation = torch.randperm(n, generator=generator, device=generator.device).to(device)

    def best(self, values: Tensor) -> Tensor:
        """The index of the largest value, `[1]`; it is not waited for where a device computes it.

        Example:
            >>> import torch
            >>> ties = Ties(4, torch.Generator().manual_seed(0), torch.device("cpu"))
            >>> ties.best(torch.tensor([0.0, 2.0, 1.0, 0.0])).tolist()
            [1]
        """
        # Of several largest values argmax takes the first. `index_select` keeps the place on the device, where indexing
        # with a tensor that holds one number would wait for that number.
        place = values.index_select(0, self.permutation).argmax().reshape(1)
        return self.permutation.index_select(0, place)

    def descending(self, values: Tensor) -> Tensor:
        """All indices, the largest value first, `[n]`."""
        return self.permutation[torch.sort(values[self.permutation], descending=True, stable=True).indices]


class Picker:
    """First the samples that are given, in their order, then always the best.

    Args:
        ties: decide between equally good samples.
        given: samples that are picked already, `[g]`.
    """

    def __init__(self, ties: Ties, given: Tensor | None = None) -> None:
        self.ties = ties
        self.given = ties.permutation[:0] if given is None else given.to(ties.permutation.device)

    def pick(self, values: Tensor, taken: Tensor) -> Tensor:
        """The index of the next sample, `[1]`, when those of `taken` are picked.

        Example:
            >>> import torch
            >>> ties = Ties(4, torch.Generator().manual_seed(0), torch.device("cpu"))
            >>> picker = Picker(ties, given=torch.tensor([3]))
            >>> values = torch.tensor([0.0, 2.0, 1.0, 0.0])
            >>> [int(picker.pick(values, torch.tensor(taken, dtype=torch.int64))) for taken in ([], [3], [3, 1])]
            [3, 1, 2]
        """
        t = len(taken)
        if t < len(self.given):
            return self.given[t : t + 1]
        return self.ties.best(values.index_fill(0, taken, -torch.inf))

    def rest(self, values: Tensor, taken: Tensor) -> Tensor:
        """All samples that are not taken, the one of largest value first."""
        return self.ties.descending(values.index_fill(0, taken, -torch.inf))[: len(values) - len(taken)]
