"""A multilayer perceptron, for feature vectors."""

import math

from torch import nn

from lcmat.networks.registry import NETS, Classifier, NetworkFacts, check_sizes


@NETS.add(
    "mlp",
    "multilayer perceptron for feature vectors (images are flattened): hidden layers with ReLU",
    facts=NetworkFacts(images_only=False),
)
def mlp(shape: tuple[int, ...], classes: int, *, width: int = 256, depth: int = 2) -> Classifier:
    """`depth` hidden layers of `width` units, then the head.

    Args:
        shape: of one sample; several dimensions are flattened.
        classes: number of logits.
        width: units of every hidden layer.
        depth: number of hidden layers.
    """
    check_sizes(width=width, depth=depth)
    layers: list[nn.Module] = [nn.Flatten()]
    size = math.prod(shape)
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return Classifier(nn.Sequential(*layers), size, classes)
