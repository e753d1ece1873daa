"""Small data sets and models that several tests share."""

import torch
from torch import Tensor, nn

from lcmat.seeding import generator
from lcmat.types import FeatureData, ImageData


def digits_like(n: int = 60, *, size: int = 8, channels: int = 1, classes: int = 4, flip: bool = False) -> ImageData:
    """Images whose class is a bright block at a place of its own, so that it can be learnt."""
    draws = generator(0, "samples")
    images = torch.randint(0, 120, (n, channels, size, size), generator=draws, dtype=torch.uint8)
    labels = torch.arange(n) % classes
    half = size // 2
    for index, label in enumerate(labels.tolist()):
        row, column = divmod(label % 4, 2)
        images[index, :, row * half : (row + 1) * half, column * half : (column + 1) * half] += 100
    return ImageData(images, labels, tuple(f"class {index}" for index in range(classes)), flip=flip)


def vectors(n: int = 50, *, d: int = 5, classes: int = 3) -> FeatureData:
    """Feature vectors around a centre for each class."""
    draws = generator(1, "samples")
    labels = torch.arange(n) % classes
    centres = 2 * torch.randn(classes, d, generator=draws)
    features = centres[labels] + torch.randn(n, d, generator=draws)
    return FeatureData(features, labels, tuple(f"class {index}" for index in range(classes)))


class NormalisedNet(nn.Module):
    """A network with batch normalisation and dropout, both of which behave otherwise in training mode."""

    def __init__(self, channels: int = 1, classes: int = 4) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(6 * 16, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = nn.functional.adaptive_avg_pool2d(torch.relu(self.norm(self.convolution(inputs))), 4)
        logits: Tensor = self.fc(self.dropout(hidden.flatten(1)))
        return logits


def normalised_net(seed: int = 0, channels: int = 1, classes: int = 4) -> NormalisedNet:
    """A `NormalisedNet` whose running statistics are no longer the initial ones."""
    draws = generator(seed, "samples")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        net = NormalisedNet(channels, classes)
        net.train()
        with torch.no_grad():
            net(torch.randn(16, channels, 8, 8, generator=draws))
    return net


def same_state(a: nn.Module, b: nn.Module) -> bool:
    """Whether two models have bit-identical parameters and buffers."""
    first, second = a.state_dict(), b.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
