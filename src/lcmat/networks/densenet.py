"""DenseNet: Huang et al., Densely Connected Convolutional Networks, CVPR 2017."""

import torch
from torch import Tensor, nn

from lcmat.networks.norms import BatchNorm
from lcmat.networks.registry import LARGE_IMAGE, NETS, Classifier, GlobalAverage, NetworkFacts
from lcmat.networks.resnet import large_stem

_GROWTH = 32
_BLOCKS = (6, 12, 24, 16)


class DenseLayer(nn.Module):
    """Adds `_GROWTH` channels to its input: batch norm, ReLU, 1 × 1 convolution, and again with 3 × 3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1 = BatchNorm(channels, relu=True)
        self.convolution1 = nn.Conv2d(channels, 4 * _GROWTH, 1, bias=False)
        self.norm2 = BatchNorm(4 * _GROWTH, relu=True)
        self.convolution2 = nn.Conv2d(4 * _GROWTH, _GROWTH, 3, padding=1, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, c, h, w]` -> `[n, c + 32, h, w]`."""
        inner = self.convolution1(self.norm1(inputs))
        return torch.cat([inputs, self.convolution2(self.norm2(inner))], dim=1)


@NETS.add(
    "densenet121",
    "DenseNet-121 for images: a 3 × 3 stem below 64 pixels, the usual one from 64 on",
    facts=NetworkFacts(images_only=True),
)
def densenet121(shape: tuple[int, ...], classes: int) -> Classifier:
    """DenseNet-121: 6,956,298 parameters for 3 × 32 × 32 and 10 classes, 7,978,856 for 3 × 224 × 224 and 1,000.

    Four blocks of dense layers; between two of them a 1 × 1 convolution halves the channels and a pool the map.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
    """
    channels, *size = shape
    large = min(size) >= LARGE_IMAGE
    side = min(size) // (4 if large else 1)
    layers: list[nn.Module] = large_stem(channels, 64) if large else [nn.Conv2d(channels, 64, 3, padding=1, bias=False)]
    width = 64
    for place, count in enumerate(_BLOCKS):
        if place > 0:
            layers += [BatchNorm(width, relu=True), nn.Conv2d(width, width // 2, 1, bias=False)]
            width //= 2
            if side >= 2:
                layers.append(nn.AvgPool2d(2))
                side //= 2
        for _ in range(count):
            layers.append(DenseLayer(width))
            width += _GROWTH
    return Classifier(nn.Sequential(*layers, BatchNorm(width, relu=True), GlobalAverage()), width, classes)
