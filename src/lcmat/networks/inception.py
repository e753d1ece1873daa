"""Inception-v3: Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016."""

import torch
from torch import Tensor, nn

from lcmat.networks.norms import BatchNorm
from lcmat.networks.registry import LARGE_IMAGE, NETS, Classifier, GlobalAverage, NetworkFacts


class Branches(nn.Module):
    """Several ways from one map, their channels side by side."""

    def __init__(self, *ways: nn.Module) -> None:
        super().__init__()
        self.ways = nn.ModuleList(ways)

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, c, h, w]` -> `[n, sum of the ways' channels, h', w']`."""
        return torch.cat([way(inputs) for way in self.ways], dim=1)


@NETS.add(
    "inception-v3",
    "Inception-v3 for images, without its auxiliary head: a stem for 32 pixels below 64, the usual one from 64 on",
    facts=NetworkFacts(images_only=True),
)
def inception_v3(shape: tuple[int, ...], classes: int) -> Classifier:
    """Inception-v3: 21,806,058 parameters for 10 classes, 23,834,568 for 1,000, at every size.

    Below 64 pixels the stem neither strides nor pools. The two reductions of the map keep its size, with the same
    weights, where fewer than three pixels are left.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
    """
    channels, *size = shape
    large = min(size) >= LARGE_IMAGE
    stem = _large_stem(channels) if large else _small_stem(channels)
    side = _side_after_large_stem(min(size)) if large else min(size) - 2
    body = nn.Sequential(
        *stem,
        _fine_block(192, 32),
        _fine_block(256, 64),
        _fine_block(288, 64),
        _first_reduction(288, side),
        *(_middle_block(768, width) for width in (128, 160, 160, 192)),
        _second_reduction(768, _reduced(side)),
        _coarse_block(1280),
        _coarse_block(2048),
        GlobalAverage(),
        nn.Dropout(),
    )
    return Classifier(body, 2048, classes)


def _convolution(
    channels_in: int,
    channels: int,
    size: int | tuple[int, int],
    *,
    stride: int = 1,
    padding: int | tuple[int, int] | None = None,
) -> nn.Sequential:
    """Convolution, batch norm, ReLU; the map keeps its size unless stride or padding say otherwise."""
    if padding is None:
        rows, columns = (size, size) if isinstance(size, int) else size
        padding = (rows // 2, columns // 2)
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, size, stride, padding, bias=False),
        BatchNorm(channels, relu=True, eps=0.001),
    )


def _small_stem(channels: int) -> list[nn.Module]:
    return [
        _convolution(channels, 32, 3),
        _convolution(32, 32, 3),
        _convolution(32, 64, 3),
        _convolution(64, 80, 1),
        _convolution(80, 192, 3, padding=0),
    ]


def _large_stem(channels: int) -> list[nn.Module]:
    return [
        _convolution(channels, 32, 3, stride=2, padding=0),
        _convolution(32, 32, 3, padding=0),
        _convolution(32, 64, 3),
        nn.MaxPool2d(3, 2),
        _convolution(64, 80, 1),
        _convolution(80, 192, 3, padding=0),
        nn.MaxPool2d(3, 2),
    ]


def _side_after_large_stem(side: int) -> int:
    side = (side - 3) // 2 + 1 - 2
    side = (side - 3) // 2 + 1 - 2
    return (side - 3) // 2 + 1


def _fine_block(channels: int, pooled: int) -> nn.Module:
    """Ways of 1 × 1, 5 × 5 and twice 3 × 3, and a pool."""
    return Branches(
        _convolution(channels, 64, 1),
        nn.Sequential(_convolution(channels, 48, 1), _convolution(48, 64, 5)),
        nn.Sequential(_convolution(channels, 64, 1), _convolution(64, 96, 3), _convolution(96, 96, 3)),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), _convolution(channels, pooled, 1)),
    )


def _middle_block(channels: int, width: int) -> nn.Module:
    """Ways of 1 × 1, one and two 7 × 7 taken apart into 1 × 7 and 7 × 1, and a pool."""
    return Branches(
        _convolution(channels, 192, 1),
        nn.Sequential(
            _convolution(channels, width, 1), _convolution(width, width, (1, 7)), _convolution(width, 192, (7, 1))
        ),
        nn.Sequential(
            _convolution(channels, width, 1),
            _convolution(width, width, (7, 1)),
            _convolution(width, width, (1, 7)),
            _convolution(width, width, (7, 1)),
            _convolution(width, 192, (1, 7)),
        ),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), _convolution(channels, 192, 1)),
    )


def _coarse_block(channels: int) -> nn.Module:
    """Ways of 1 × 1, and 1 × 3 beside 3 × 1 behind a 1 × 1 and behind a 3 × 3, and a pool."""
    return Branches(
        _convolution(channels, 320, 1),
        nn.Sequential(_convolution(channels, 384, 1), _both_ways(384)),
        nn.Sequential(_convolution(channels, 448, 1), _convolution(448, 384, 3), _both_ways(384)),
        nn.Sequential(nn.AvgPool2d(3, 1, 1), _convolution(channels, 192, 1)),
    )


def _both_ways(width: int) -> nn.Module:
    return Branches(_convolution(width, width, (1, 3)), _convolution(width, width, (3, 1)))


def _first_reduction(channels: int, side: int) -> nn.Module:
    stride, padding = _reduction(side)
    return Branches(
        _convolution(channels, 384, 3, stride=stride, padding=padding),
        nn.Sequential(
            _convolution(channels, 64, 1),
            _convolution(64, 96, 3),
            _convolution(96, 96, 3, stride=stride, padding=padding),
        ),
        nn.MaxPool2d(3, stride, padding),
    )


def _second_reduction(channels: int, side: int) -> nn.Module:
    stride, padding = _reduction(side)
    return Branches(
        nn.Sequential(_convolution(channels, 192, 1), _convolution(192, 320, 3, stride=stride, padding=padding)),
        nn.Sequential(
            _convolution(channels, 192, 1),
            _convolution(192, 192, (1, 7)),
            _convolution(192, 192, (7, 1)),
            _convolution(192, 192, 3, stride=stride, padding=padding),
        ),
        nn.MaxPool2d(3, stride, padding),
    )


def _reduction(side: int) -> tuple[int, int]:
    """Stride and padding of a reduction: the map is halved, or kept where it is used up."""
    return (2, 0) if side >= 3 else (1, 1)


def _reduced(side: int) -> int:
    return (side - 3) // 2 + 1 if side >= 3 else side
