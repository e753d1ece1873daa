"""Small trainings that the tests of dynamic selection share."""

import torch
from torch import Tensor, nn

from lcmat import networks
from lcmat.dynamic import Sampler
from lcmat.types import FeatureData
from samples import vectors


def small(n: int = 60) -> tuple[FeatureData, nn.Module]:
    """Data of three classes, and a network with fresh weights for it."""
    data = vectors(n)
    return data, networks.build("mlp:width=8", data)


def losses_of(model: nn.Module, data: FeatureData, rows: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(data.features[rows]), data.labels[rows], reduction="none")


def train_epoch(model: nn.Module, data: FeatureData, sampler: Sampler, batch_size: int = 16) -> list[int]:
    """One epoch of plain SGD by the sampler, its losses recorded; the rows in the order they were visited."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    visited = list(sampler)
    for rows in torch.tensor(visited).split(batch_size):
        losses = losses_of(model, data, rows)
        sampler.record(rows, losses)
        optimizer.zero_grad()
        (losses * sampler.weights(rows)).mean().backward()
        optimizer.step()
    return visited
