"""Losses over lines and planes through a parameter point, along filter-normalised random directions.

Li et al., Visualizing the loss landscape of neural nets, NeurIPS 2018.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lcmat import seeding
from lcmat.landscape.network_gap import Parameters, check_evaluation_mode, sample_losses
from lcmat.landscape.samples import Pool, samples_of_full
from lcmat.networks.registry import Classifier
from lcmat.training import precision as number_formats
from lcmat.training.inputs import Normaliser

FULL = "T"
# Input numbers in one call of the network, over all parameter points that share it.
_CALL_NUMBERS = {"cpu": 2**20, "cuda": 2**23}
_MOST_TOGETHER = 16


@dataclass(frozen=True, eq=False)
class Plane:
    """Losses at θ + α d₁ + β d₂.

    Attributes:
        positions: the values of α and of β, `[r]`.
        losses: 'T' or a reduced set's name -> its mean loss, float64 `[r, r]`, rows by β and columns by α.
        seed: of the directions.
        samples: of T that its losses are means of.
    """

    positions: Tensor
    losses: Mapping[str, Tensor]
    seed: int
    samples: int


@dataclass(frozen=True, eq=False)
class Slice:
    """Losses at θ + α d; attributes as of `Plane`, losses `[r]`."""

    positions: Tensor
    losses: Mapping[str, Tensor]
    seed: int
    samples: int


def filter_normalised(values: Mapping[str, Tensor], seed: int, number: int = 0) -> dict[str, Tensor]:
    """A random direction of which each filter is as long as the filter that it moves.

    d_f ← d_f/‖d_f‖ · ‖θ_f‖ for each filter f: the weights that lead to one output channel of a convolution, or to one
    unit of a linear layer. Parameters of one dimension, which are biases and the weights of norms, stay where they are.

    Args:
        values: name -> parameter.
        seed: of the direction.
        number: tells several directions of one seed apart.

    Example:
        >>> import torch
        >>> weights = {"w": 3 * torch.ones(2, 4), "b": torch.ones(2)}
        >>> found = filter_normalised(weights, seed=0)
        >>> [round(float(row.norm()), 5) for row in found["w"]], found["b"].tolist()
        ([6.0, 6.0], [0.0, 0.0])
    """
    draws = seeding.generator(seed, "direction", number)
    direction = {}
    for name, value in values.items():
        # Drawn on the processor in one type, so that a seed gives the same direction everywhere.
        noise = torch.randn(value.shape, generator=draws).to(value)
        if value.ndim < 2:
            direction[name] = torch.zeros_like(value)
            continue
        noise_length, length = (part.flatten(1).norm(dim=1) for part in (noise, value))
        scale = torch.where(noise_length > 0, length / noise_length, 0.0)
        direction[name] = noise * scale.reshape(-1, *[1] * (value.ndim - 1))
    return direction


@dataclass(frozen=True, eq=False)
class Surface:
    """Mean losses of T and of every reduced set at displaced parameters; the model itself is not moved.

    Attributes:
        model: in evaluation mode.
        pool: the samples.
        device: where to compute.
        precision: of the forward pass; 'float32', 'tf32' or 'bf16'.
        together: parameter points evaluated by one call; None takes as many as fit, for the networks of lcmat, and one
            for others, whose code may branch on values.
    """

    model: nn.Module
    pool: Pool
    device: torch.device
    precision: str = "float32"
    together: int | None = None

    def __post_init__(self) -> None:
        check_evaluation_mode(self.model)

    def plane(
        self,
        seed: int,
        *,
        reach: float = 1.0,
        resolution: int = 51,
        progress: Callable[[int, int], None] | None = None,
    ) -> Plane:
        """The losses over −reach ≤ α, β ≤ reach along the first two directions of a seed."""
        at = positions(reach, resolution)
        beta, alpha = torch.meshgrid(at, at, indexing="ij")
        places = torch.stack([alpha.flatten(), beta.flatten()], 1)
        losses = self._losses(places, seed, progress)
        return Plane(
            at,
            {name: part.reshape(len(at), len(at)) for name, part in losses.items()},
            seed,
            samples_of_full(self.pool),
        )

    def line(self, seed: int, *, reach: float = 1.0, resolution: int = 51) -> Slice:
        """The losses over −reach ≤ α ≤ reach along the first direction of a seed."""
        at = positions(reach, resolution)
        return Slice(at, self._losses(at[:, None], seed, None), seed, samples_of_full(self.pool))

    def _losses(self, places: Tensor, seed: int, progress: Callable[[int, int], None] | None) -> dict[str, Tensor]:
        """The losses at coordinates `[m, directions]`: name -> float64 `[m]`."""
        parameters = Parameters(self.model, self.device)
        directions = [filter_normalised(parameters.values, seed, number) for number in range(places.shape[1])]
        rows = max(1, min(len(self.pool.data), _CALL_NUMBERS[self.device.type] // self._sample_size))
        together = self.together or self._fitting(rows)
        found = []
        with torch.no_grad(), number_formats.float32_products(self.precision, self.device):
            for group in places.split(together):
                points = {
                    name: torch.stack(
                        [
                            value + sum(float(way) * part[name] for way, part in zip(place, directions, strict=True))
                            for place in group
                        ]
                    )
                    for name, value in parameters.values.items()
                }
                found.append(self._losses_of(points, parameters.fixed, rows))
                if progress is not None:
                    progress(sum(map(len, found)), len(places))
        losses = torch.cat(found)
        return dict(zip((FULL, *self.pool.reduced), losses.T, strict=True))

    def _losses_of(self, points: Mapping[str, Tensor], fixed: Mapping[str, Tensor], rows: int) -> Tensor:
        """The losses of T and of every set at some parameter points, `[points, sets]`."""
        shares = torch.stack([self.pool.full, *self.pool.reduced.values()], 1).to(self.device)
        normalise = Normaliser.of(self.model, self.pool.data, self.device)
        count = len(next(iter(points.values())))
        total = torch.zeros(count, shares.shape[1], dtype=torch.float64, device=self.device)

        def logits_of(point: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
            logits: Tensor = functional_call(self.model, {**fixed, **point}, (inputs,))
            return logits

        for start in range(0, len(shares), rows):
            inputs = normalise(self.pool.data.inputs[start : start + rows].to(self.device))
            targets = self.pool.targets[start : start + rows].to(self.device)
            with number_formats.autocast(self.precision, self.device):
                if count > 1:
                    logits = vmap(logits_of, in_dims=(0, None))(dict(points), inputs)
                else:
                    logits = logits_of({name: part[0] for name, part in points.items()}, inputs)[None]
            losses = torch.stack([sample_losses(part, targets) for part in logits])
            total += losses @ shares[start : start + rows]
        return total.cpu()

    @property
    def _sample_size(self) -> int:
        return self.pool.data.inputs[0].numel()

    def _fitting(self, rows: int) -> int:
        if not isinstance(self.model, Classifier):
            return 1
        return max(1, min(_MOST_TOGETHER, _CALL_NUMBERS[self.device.type] // (rows * self._sample_size)))


def positions(reach: float, resolution: int) -> Tensor:
    """Evenly from −reach to reach, `[resolution]`, the middle one 0.

    Raises:
        ValueError: for a reach that is not above 0, or an even resolution.
    """
    if not reach > 0:
        raise ValueError(f"expected a reach above 0, got {reach}")
    if resolution < 3 or resolution % 2 == 0:
        raise ValueError(f"expected an odd resolution of at least 3, so that the middle is θ itself, got {resolution}")
    return torch.linspace(-reach, reach, resolution, dtype=torch.float64)
