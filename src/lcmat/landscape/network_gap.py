"""The gap as a function of all parameters of a network, by automatic differentiation, batch by batch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lcmat.training.inputs import Normaliser, batch_bounds
from lcmat.types import Data

# Numbers in the inputs of one batch: a second derivative keeps several times the activations of a forward pass.
_BATCH_NUMBERS = {"cpu": 3 * 2**17, "cuda": 2**22}
_NORMS = nn.modules.batchnorm._BatchNorm
_DROPOUTS = nn.modules.dropout._DropoutNd


def check_evaluation_mode(model: nn.Module) -> None:
    """Refuse a model whose loss is no function of its parameters and of one sample at a time.

    Raises:
        ValueError: for dropout or batch normalisation in training mode, and for batch normalisation without running
            statistics.
    """
    for name, part in model.named_modules():
        if isinstance(part, _NORMS) and part.running_mean is None:
            raise ValueError(
                f"{name or type(part).__name__} normalises by the statistics of each batch, so that the loss of a "
                "sample depends on the others; use track_running_stats=True, or group norm"
            )
        if isinstance(part, _NORMS | _DROPOUTS) and part.training:
            raise ValueError(
                f"{name or type(part).__name__} ({type(part).__name__}) is in training mode, in which the loss depends "
                "on the batch or on chance; call model.eval() first"
            )


class Parameters:
    """The trainable parameters of a model as one flat vector, in the order of `named_parameters`."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        named = {name: value for name, value in model.named_parameters() if value.requires_grad}
        if not named:
            raise ValueError("expected a model with trainable parameters, but none of them requires a gradient")
        self.values = {name: value.detach().to(device) for name, value in named.items()}
        self.dtype = next(iter(self.values.values())).dtype
        self.size = sum(value.numel() for value in self.values.values())
        # What a forward pass might write to is a copy: the model stays as it is.
        rest = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        self.fixed = {name: value.detach().to(device).clone() for name, value in rest.items() if name not in named}

    def moved(self, shift: Tensor) -> dict[str, Tensor]:
        """The point θ + ε as named tensors."""
        parts = self.split(shift)
        return {name: value + parts[name] for name, value in self.values.items()}

    def split(self, flat: Tensor) -> dict[str, Tensor]:
        """A flat vector as named tensors."""
        parts = flat.split([value.numel() for value in self.values.values()])
        return {name: part.reshape(value.shape) for (name, value), part in zip(self.values.items(), parts, strict=True)}

    def join(self, named: Mapping[str, Tensor]) -> Tensor:
        """Named tensors as a flat vector."""
        return torch.cat([named[name].flatten() for name in self.values])


def sample_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of each sample, float64, `[n]`: differences of means lose digits."""
    return nn.functional.cross_entropy(logits.double(), targets, reduction="none")


@dataclass(frozen=True, eq=False)
class NetworkGap:
    """h(ε) where ε displaces all trainable parameters.

    Attributes:
        model: in evaluation mode; it is never changed.
        data: the samples.
        targets: class indices `[n]` or distributions `[n, C]`.
        coefficients: c, float64, `[n]`; samples with zero cost nothing.
        device: where to compute.
        batch_size: rows at a time; None fits the device. Results depend on it in rounding only.
    """

    model: nn.Module
    data: Data
    targets: Tensor
    coefficients: Tensor
    device: torch.device
    batch_size: int | None = None

    def __post_init__(self) -> None:
        check_evaluation_mode(self.model)

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters at θ."""
        return Parameters(self.model, self.device)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.parameters.size

    @property
    def dtype(self) -> torch.dtype:
        """That of the parameters."""
        return self.parameters.dtype

    def value(self, shift: Tensor) -> float:
        """The difference h(ε)."""
        point = self.parameters.moved(shift)
        with torch.no_grad():
            return float(sum(self._loss(point, batch) for batch in self._batches()))

    def value_and_gradient(self, shift: Tensor) -> tuple[float, Tensor]:
        """The difference h(ε) and its gradient, summed over the batches in float64."""
        total, value = torch.zeros(self.size, dtype=torch.float64, device=self.device), 0.0
        for batch in self._batches():
            point = {name: part.requires_grad_() for name, part in self.parameters.moved(shift).items()}
            loss = self._loss(point, batch)
            total += self._gradient(loss, point)
            value += float(loss.detach())
        return value, total.to(self.dtype)

    def product(self, direction: Tensor) -> Tensor:
        """The Hessian at θ times a direction, by differentiating ⟨∇h, direction⟩ once more."""
        total = torch.zeros(self.size, dtype=torch.float64, device=self.device)
        along = self.parameters.split(direction).values()
        single = len(self._bounds) <= 1
        for parts, gradient in self._single if single else map(self._differentiated, self._batches()):
            # A gradient that does not depend on the parameters has no curvature, and no graph.
            pairs = [(part, way) for part, way in zip(gradient, along, strict=True) if part.requires_grad]
            if pairs:
                slopes, ways = zip(*pairs, strict=True)
                found = torch.autograd.grad(
                    slopes, parts, ways, retain_graph=single, allow_unused=True, materialize_grads=True
                )
                total += torch.cat([part.flatten() for part in found]).double()
        return total.to(self.dtype)

    @cached_property
    def _single(self) -> list[tuple[list[Tensor], tuple[Tensor, ...]]]:
        """The gradient of the only batch with its graph: kept, each further product takes half the time.

        It takes the memory that every product of as many samples takes.
        """
        return [self._differentiated(batch) for batch in self._batches()]

    def _differentiated(self, batch: tuple[Tensor, Tensor, Tensor]) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        """Parameters at θ, and the gradient in them, which can be differentiated again."""
        point = {name: part.detach().clone().requires_grad_() for name, part in self.parameters.values.items()}
        parts, loss = list(point.values()), self._loss(point, batch)
        return parts, torch.autograd.grad(loss, parts, create_graph=True, allow_unused=True, materialize_grads=True)

    def _gradient(self, value: Tensor, point: Mapping[str, Tensor]) -> Tensor:
        if not value.requires_grad:
            return torch.zeros(self.size, dtype=torch.float64, device=self.device)
        gradient = torch.autograd.grad(value, list(point.values()), allow_unused=True, materialize_grads=True)
        return torch.cat([part.flatten() for part in gradient]).double()

    def _loss(self, point: Mapping[str, Tensor], batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        inputs, targets, coefficients = batch
        logits = functional_call(self.model, {**self.parameters.fixed, **point}, (inputs,))
        return coefficients @ sample_losses(logits, targets)

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        """Where each batch of the samples that count begins and ends."""
        count = int(self.coefficients.count_nonzero())
        most = max(1, _BATCH_NUMBERS[self.device.type] // self.data.inputs[0].numel())
        return batch_bounds(count, self.batch_size or most) if count else []

    def _batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Inputs, targets and coefficients of the samples that count."""
        rows = self.coefficients.nonzero().flatten()
        normalise = Normaliser.of(self.model, self.data, self.device)
        for start, stop in self._bounds:
            part = rows[start:stop]
            yield (
                normalise(self.data.inputs[part].to(self.device)),
                self.targets[part].to(self.device),
                self.coefficients[part].to(self.device),
            )
