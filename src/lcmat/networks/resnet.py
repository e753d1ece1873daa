"""Residual networks: He et al., Deep Residual Learning for Image Recognition, CVPR 2016."""

from collections.abc import Sequence

from torch import Tensor, nn

from lcmat.networks.norms import BatchNorm
from lcmat.networks.registry import LARGE_IMAGE, NETS, Classifier, GlobalAverage, NetworkFacts, check_sizes


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut, which is a 1 × 1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.convolution1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = BatchNorm(channels, relu=True)
        self.convolution2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = BatchNorm(channels, relu=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), BatchNorm(channels))

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, channels_in, h, w]` -> `[n, channels, h / stride, w / stride]`."""
        inner = self.norm1(self.convolution1(inputs))
        outputs: Tensor = self.norm2(self.convolution2(inner), shortcut=self.shortcut(inputs))
        return outputs


@NETS.add(
    "resnet18",
    "ResNet-18 for images: the CIFAR form below 64 pixels, the usual stem from 64 on",
    facts=NetworkFacts(images_only=True),
)
def resnet18(shape: tuple[int, ...], classes: int) -> Classifier:
    """ResNet-18: 11,173,962 parameters for 3 × 32 × 32 and 10 classes, 11,689,512 for 3 × 224 × 224 and 1,000."""
    return basic_resnet(shape, classes, blocks=(2, 2, 2, 2))


@NETS.add(
    "resnet34",
    "ResNet-34 for images: the CIFAR form below 64 pixels, the usual stem from 64 on",
    facts=NetworkFacts(images_only=True),
)
def resnet34(shape: tuple[int, ...], classes: int) -> Classifier:
    """ResNet-34: 21,282,122 parameters for 3 × 32 × 32 and 10 classes, 21,797,672 for 3 × 224 × 224 and 1,000."""
    return basic_resnet(shape, classes, blocks=(3, 4, 6, 3))


@NETS.add(
    "resnet10",
    "ResNet-10 for images, as narrow as the condensation papers test it on CIFAR; width=64 is as wide as ResNet-18",
    facts=NetworkFacts(images_only=True),
)
def resnet10(shape: tuple[int, ...], classes: int, *, width: int = 32) -> Classifier:
    """ResNet-10 with batch norm: 1,228,970 parameters for 3 × 32 × 32 and 10 classes.

    With a width of 64 it has 5,418,792 for 3 × 224 × 224 and 1,000 classes.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
        width: channels of the first of four stages; each further one has twice as many.
    """
    check_sizes(width=width)
    return basic_resnet(shape, classes, blocks=(1, 1, 1, 1), width=width)


def basic_resnet(shape: tuple[int, ...], classes: int, *, blocks: Sequence[int], width: int = 64) -> Classifier:
    """A residual network of basic blocks in four stages.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
        blocks: basic blocks in each stage.
        width: channels of the first stage; each further one has twice as many.
    """
    channels, *size = shape
    layers = large_stem(channels, width) if min(size) >= LARGE_IMAGE else _small_stem(channels, width)
    last = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(BasicBlock(last, width << stage, stride))
            last = width << stage
    return Classifier(nn.Sequential(*layers, GlobalAverage()), last, classes)


def _small_stem(channels: int, width: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, 1, 1, bias=False), BatchNorm(width, relu=True)]


def large_stem(channels: int, width: int) -> list[nn.Module]:
    """The stem for ImageNet, which quarters the map."""
    return [
        nn.Conv2d(channels, width, 7, 2, 3, bias=False),
        BatchNorm(width, relu=True),
        nn.MaxPool2d(3, 2, 1),
    ]
