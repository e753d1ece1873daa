"""Residual networks: He et al., Deep Residual Learning for Image Recognition, CVPR 2016."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lcmat.networks.registry import NETS, Classifier, NetworkFacts

# From this size on the usual stem (7 × 7, stride 2, max-pool) is used, below it the form for CIFAR (3 × 3, no pool).
LARGE_IMAGE = 64


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut, which is a 1 × 1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.convolution1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.convolution2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, channels_in, h, w]` -> `[n, channels, h / stride, w / stride]`."""
        inner = torch.relu(self.norm1(self.convolution1(inputs)))
        return torch.relu(self.norm2(self.convolution2(inner)) + self.shortcut(inputs))


class GlobalAverage(nn.Module):
    """The mean over all pixels of a map."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, channels, h, w]` -> `[n, channels]`."""
        return inputs.mean((2, 3))


@NETS.add(
    "resnet18",
    "ResNet-18 for images: the CIFAR form below 64 pixels, the usual stem from 64 on",
    facts=NetworkFacts(images_only=True),
)
def resnet18(shape: tuple[int, ...], classes: int) -> Classifier:
    """ResNet-18: 11,173,962 parameters for 3 × 32 × 32 and 10 classes, 11,689,512 for 3 × 224 × 224 and 1,000."""
    return basic_resnet(shape, classes, blocks=(2, 2, 2, 2))


def basic_resnet(shape: tuple[int, ...], classes: int, *, blocks: Sequence[int]) -> Classifier:
    """A residual network of basic blocks in four stages of 64, 128, 256 and 512 channels.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
        blocks: basic blocks in each stage.
    """
    channels, height, width = shape
    layers = _large_stem(channels) if min(height, width) >= LARGE_IMAGE else _small_stem(channels)
    last = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(BasicBlock(last, 64 << stage, stride))
            last = 64 << stage
    return Classifier(nn.Sequential(*layers, GlobalAverage()), last, classes)


def _small_stem(channels: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]


def _large_stem(channels: int) -> list[nn.Module]:
    return [
        nn.Conv2d(channels, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
