"""The registry of networks, and the form that they share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor, nn

from lcmat.registry import Registry

# From this size on a network has the stem it was published with for ImageNet, below it the form for CIFAR.
LARGE_IMAGE = 64


class Classifier(nn.Module):
    """A network in two parts: `body` gives the features, `head` the logits.

    Attributes:
        body: inputs -> features `[n, d]`.
        head: the last linear layer, d -> C.
    """

    def __init__(self, body: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(features, classes)

    def features(self, inputs: Tensor) -> Tensor:
        """The input of the head, `[n, d]`."""
        features: Tensor = self.body(inputs)
        return features

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits, `[n, C]`."""
        logits: Tensor = self.head(self.features(inputs))
        return logits


class GlobalAverage(nn.Module):
    """The mean over all pixels of a map."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, channels, h, w]` -> `[n, channels]`."""
        return inputs.mean((2, 3))


@dataclass(frozen=True)
class NetworkFacts:
    """What is known of a network: whether it takes images only, or samples of any shape."""

    images_only: bool


# (shape of one sample, number of classes, *, options) -> network
Builder: TypeAlias = Callable[..., Classifier]

NETS: Registry[Builder, NetworkFacts] = Registry("network")


def check_sizes(**sizes: int) -> None:
    """Refuse options below 1, naming the option."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"expected {name} of at least 1, got {size}")
