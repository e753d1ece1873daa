"""Losses over lines and planes through a parameter point, along filter-normalised random directions.

Li et al., Visualizing the loss landscape of neural nets, NeurIPS 2018.

One parameter point after another, each with large batches, which keep the device busy. Several points in one call, by
`torch.func.vmap`, do not pay: the convolutions of many networks become one grouped convolution, for which the libraries
have slower kernels; the same plane took up to three times as long. Nothing waits for a point to end, so that a CUDA
graph of one would save launches that the device does not wait for either. What costs is to read and write the largest
maps: seven times behind each convolution of a ConvNet layer by layer, and twice in the form of `quick_copy` on CUDA.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lcmat import seeding
from lcmat.condensation.follower import lightened
from lcmat.landscape.network_gap import Parameters, check_evaluation_mode, sample_losses
from lcmat.landscape.samples import Pool, samples_of_full
from lcmat.networks.registry import Classifier
from lcmat.training import precision as number_formats
from lcmat.training.inputs import Normaliser, batch_bounds, inference_batch_size, input_layout

FULL = "T"


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
        precision: of the forward pass; 'float32', 'tf32' or 'bf16'. Losses and their sums are float64 in any case.
        batch_size: rows at a time; None fits the device. Results depend on it in rounding only.
    """

    model: nn.Module
    pool: Pool
    device: torch.device
    precision: str = "float32"
    batch_size: int | None = None

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
        data, device = self.pool.data, self.device
        walker = _Walker(self.model, device, input_layout(self.model, data), seed, places.shape[1])
        normalise = Normaliser.of(self.model, data, device)
        shares = torch.stack([self.pool.full, *self.pool.reduced.values()], 1)
        batches = batch_bounds(len(data), inference_batch_size(data, device, self.batch_size))
        # Summed on the device and read once: a GPU never waits for the processor.
        losses = torch.zeros(len(places), shares.shape[1], dtype=torch.float64, device=device)
        with torch.no_grad(), number_formats.float32_products(self.precision, device):
            for number, (start, stop) in enumerate(batches):
                inputs, targets, share = (
                    part[start:stop].to(device) for part in (data.inputs, self.pool.targets, shares)
                )
                inputs = normalise(inputs)
                for index, place in enumerate(places.tolist()):
                    model = walker.at(place)
                    with number_formats.autocast(self.precision, device):
                        logits = model(inputs)
                    losses[index] += sample_losses(logits, targets) @ share
                    if progress is not None:
                        progress(number * len(places) + index + 1, len(batches) * len(places))
        return dict(zip((FULL, *self.pool.reduced), losses.cpu().T, strict=True))


class _Walker:
    """A copy of the model whose parameters are overwritten by θ + Σ_j x_j d_j, point after point."""

    def __init__(
        self, model: nn.Module, device: torch.device, layout: torch.memory_format, seed: int, directions: int
    ) -> None:
        values = Parameters(model, device).values
        ways = [filter_normalised(values, seed, number) for number in range(directions)]
        own = quick_copy(model).to(device)
        self._model: nn.Module = own.to(memory_format=layout)  # type: ignore[call-overload]
        self._moved = [
            (part.detach(), values[name], [way[name] for way in ways])
            for name, part in self._model.named_parameters()
            if name in values and part.ndim > 1
        ]

    def at(self, place: list[float]) -> nn.Module:
        """The copy, moved to the coordinates `[directions]`; the next call moves the same copy on."""
        for part, value, ways in self._moved:
            part.copy_(value)
            for distance, way in zip(place, ways, strict=True):
                part.add_(way, alpha=distance)
        return self._model


def quick_copy(model: nn.Module) -> nn.Module:
    """A copy that gives the same logits; of this package's networks one that takes fewer passes over its maps.

    Biases that the norm behind them takes out again are gone; the weights of more than one dimension keep their names.
    """
    own = copy.deepcopy(model)
    return lightened(own) if isinstance(own, Classifier) else own


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
