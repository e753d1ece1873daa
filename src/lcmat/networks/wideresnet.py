"""Wide residual networks: Zagoruyko and Komodakis, Wide Residual Networks, BMVC 2016."""

from torch import Tensor, nn

from lcmat.networks.norms import BatchNorm
from lcmat.networks.registry import LARGE_IMAGE, NETS, Classifier, GlobalAverage, NetworkFacts


class PreActivationBlock(nn.Module):
    """Twice batch norm, ReLU, 3 × 3 convolution; a 1 × 1 convolution is the shortcut where the shape changes."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.norm1 = BatchNorm(channels_in, relu=True)
        self.convolution1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm2 = BatchNorm(channels, relu=True)
        self.convolution2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        same = stride == 1 and channels_in == channels
        self.shortcut = None if same else nn.Conv2d(channels_in, channels, 1, stride, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `[n, channels_in, h, w]` -> `[n, channels, h / stride, w / stride]`."""
        active = self.norm1(inputs)
        inner = self.convolution2(self.norm2(self.convolution1(active)))
        # The shortcut leaves from behind the activation where it has weights, from before it where it has none.
        outputs: Tensor = inner + (inputs if self.shortcut is None else self.shortcut(active))
        return outputs


@NETS.add(
    "wrn-16-8",
    "wide residual network of 16 layers, 8 times as wide, for images",
    facts=NetworkFacts(images_only=True),
)
def wrn_16_8(shape: tuple[int, ...], classes: int) -> Classifier:
    """WRN-16-8: 10,961,370 parameters for 3 × 32 × 32 and 10 classes.

    Three stages of two blocks with 128, 256 and 512 channels. From 64 pixels on a 7 × 7 convolution with stride 2 and
    a max-pool come first, as ResNet has them.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
    """
    channels, *size = shape
    layers: list[nn.Module] = (
        [nn.Conv2d(channels, 16, 7, 2, 3, bias=False), nn.MaxPool2d(3, 2, 1)]
        if min(size) >= LARGE_IMAGE
        else [nn.Conv2d(channels, 16, 3, 1, 1, bias=False)]
    )
    last = 16
    for width, stride in ((128, 1), (256, 2), (512, 2)):
        layers += [PreActivationBlock(last, width, stride), PreActivationBlock(width, width, 1)]
        last = width
    return Classifier(nn.Sequential(*layers, BatchNorm(last, relu=True), GlobalAverage()), last, classes)
