"""Small problems whose Hessians can be written down whole, in float64."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lcmat import seeding
from lcmat.landscape.samples import Pool, make_pool
from lcmat.training.inputs import Normaliser
from lcmat.types import Data, FeatureData, Subset
from samples import normalised_net, vectors

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Quadratic:
    """h(ε) = c + gᵀε + ½ εᵀHε."""

    hessian: Tensor
    slope: Tensor
    constant: float
    dtype: torch.dtype = torch.float64
    device: torch.device = CPU

    @property
    def size(self) -> int:
        return len(self.slope)

    def value(self, shift: Tensor) -> float:
        return float(self.constant + self.slope @ shift + shift @ self.hessian @ shift / 2)

    def value_and_gradient(self, shift: Tensor) -> tuple[float, Tensor]:
        return self.value(shift), self.slope + self.hessian @ shift

    def product(self, direction: Tensor) -> Tensor:
        return self.hessian @ direction


def symmetric(values: Tensor, seed: int = 0) -> Tensor:
    """A matrix with these eigenvalues, in no special basis."""
    draws = seeding.generator(seed, "matrix")
    basis = torch.linalg.qr(torch.randn(len(values), len(values), generator=draws, dtype=torch.float64)).Q
    matrix: Tensor = basis @ torch.diag(values.double()) @ basis.T
    return matrix


def tiny_network(data: FeatureData) -> nn.Sequential:
    """A smooth network of 43 parameters whose last layer is linear."""
    with seeding.isolated(3, "network"):
        classes = len(data.class_names)
        network = nn.Sequential(nn.Linear(data.features.shape[1], 5), nn.Tanh(), nn.Linear(5, classes))
    return network.double().eval()


def batch_norm_network() -> nn.Module:
    """Convolution, batch norm with running statistics, dropout, and a head, in evaluation mode."""
    return normalised_net().double().eval()


def subset_of(data: Data, rows: list[int], *, weights: list[float] | None = None) -> Subset:
    n = len(data)
    shares = torch.full((len(rows),), n / len(rows), dtype=torch.float64)
    if weights is not None:
        shares = torch.tensor(weights, dtype=torch.float64) * n / sum(weights)
    return Subset(torch.tensor(rows), shares, None, "by hand", {}, 0, n, weighted=weights is not None)


def tiny_pool(rows: list[int]) -> tuple[nn.Sequential, Pool]:
    """A network, and 23 samples with a subset of them."""
    data = vectors(23, d=4, classes=3)
    return tiny_network(data), make_pool(data, {"S": subset_of(data, rows)})


def flat_parameters(model: nn.Module) -> Tensor:
    return torch.cat([part.detach().flatten() for part in model.parameters()])


def mean_loss(model: nn.Module, flat: Tensor, data: Data, rows: Tensor) -> Tensor:
    """The mean cross-entropy of some rows, as one would write it on a blackboard."""
    named, start = {}, 0
    for name, part in model.named_parameters():
        named[name] = flat[start : start + part.numel()].reshape(part.shape)
        start += part.numel()
    inputs = Normaliser(data, torch.float64, CPU)(data.inputs[rows])
    return nn.functional.cross_entropy(functional_call(model, named, (inputs,)), data.labels[rows])


def true_gap(model: nn.Module, flat: Tensor, data: Data, rows: list[int]) -> Tensor:
    """The difference L(T) − L(S) at these parameters."""
    return mean_loss(model, flat, data, torch.arange(len(data))) - mean_loss(model, flat, data, torch.tensor(rows))


def true_hessian(model: nn.Module, data: Data, rows: list[int]) -> Tensor:
    """The Hessian H_T − H_S by automatic differentiation, `[P, P]`."""
    found: Tensor = torch.autograd.functional.hessian(
        lambda flat: true_gap(model, flat, data, rows), flat_parameters(model)
    )
    return found
