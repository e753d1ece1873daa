"""Several processes that train one model: all go by the picks of the first, and each visits its own share."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from lcmat.dynamic.schedule import Picks


@dataclass(frozen=True)
class Ranks:
    """This process among all of them.

    Attributes:
        rank: its number, from 0.
        world: how many there are.
    """

    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.world < 1 or not 0 <= self.rank < self.world:
            raise ValueError(f"expected a rank from 0 to world − 1, got rank {self.rank} of world {self.world}")

    @classmethod
    def current(cls) -> "Ranks":
        """Those of the process group, or one alone."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def connected(self) -> bool:
        """Whether there are others to exchange tensors with."""
        return self.world > 1 and dist.is_available() and dist.is_initialized()

    def share(self, rows: Tensor) -> Tensor:
        """Every world-th row from the rank's own on; all shares are of one size, for which first rows may repeat.

        Example:
            >>> import torch
            >>> [Ranks(rank, 2).share(torch.arange(5)).tolist() for rank in (0, 1)]
            [[0, 2, 4], [1, 3, 0]]
        """
        missing = -len(rows) % self.world
        return torch.cat([rows, rows[:missing]])[self.rank :: self.world]

    def length(self, size: int) -> int:
        """How many rows a share of so many has."""
        return -(-size // self.world)

    def agree(self, choose: Callable[[], Picks]) -> Picks:
        """What the first rank chooses, on every rank.

        Raises:
            RuntimeError: on the other ranks, when choosing failed on the first.
        """
        if not self.connected:
            return choose()
        if self.rank == 0:
            try:
                picks = choose()
            except BaseException:
                _broadcast(torch.tensor([-1, 0]))
                raise
            weighted = picks.weights is not None
            _broadcast(torch.tensor([len(picks.rows), int(weighted)]))
            _broadcast(picks.rows)
            if picks.weights is not None:
                _broadcast(picks.weights)
            return picks
        size, weighted = _broadcast(torch.zeros(2, dtype=torch.int64)).tolist()
        if size < 0:
            raise RuntimeError("choosing the samples failed on rank 0; see its message")
        rows = _broadcast(torch.zeros(size, dtype=torch.int64))
        return Picks(rows, _broadcast(torch.zeros(size)) if weighted else None)

    def add_up(self, values: Tensor) -> Tensor:
        """The sum of every rank's values."""
        if not self.connected:
            return values
        sent = values.to(_device(), copy=True)
        dist.all_reduce(sent)
        return sent.to(values.device)


def _broadcast(values: Tensor) -> Tensor:
    sent = values.to(_device(), copy=True)
    dist.broadcast(sent, src=0)
    return sent.to(values.device)


def _device() -> torch.device:
    """Where the process group exchanges tensors: NCCL knows those on a GPU only."""
    if "nccl" in dist.get_backend():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
