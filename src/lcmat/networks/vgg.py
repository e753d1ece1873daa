"""VGG: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, ICLR 2015."""

from torch import nn

from lcmat.networks.norms import BatchNorm
from lcmat.networks.registry import LARGE_IMAGE, NETS, Classifier, GlobalAverage, NetworkFacts

# Channels of each convolution; None is a pool.
_VGG16 = (64, 64, None, 128, 128, None, 256, 256, 256, None, 512, 512, 512, None, 512, 512, 512, None)


@NETS.add(
    "vgg16",
    "VGG-16 with batch norm for images: one linear layer below 64 pixels, the usual three from 64 on",
    facts=NetworkFacts(images_only=True),
)
def vgg16(shape: tuple[int, ...], classes: int) -> Classifier:
    """VGG-16: 14,728,266 parameters for 3 × 32 × 32 and 10 classes, 138,365,992 for 3 × 224 × 224 and 1,000.

    A pool is left out where a single pixel is left already.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
    """
    channels, *size = shape
    side = min(size)
    layers: list[nn.Module] = []
    for width in _VGG16:
        if width is not None:
            layers += [nn.Conv2d(channels, width, 3, padding=1), BatchNorm(width, relu=True)]
            channels = width
        elif side >= 2:
            layers.append(nn.MaxPool2d(2))
            side //= 2
    if min(size) < LARGE_IMAGE:
        return Classifier(nn.Sequential(*layers, GlobalAverage()), channels, classes)
    hidden = [
        nn.Linear(channels * 7 * 7, 4096),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        nn.ReLU(),
        nn.Dropout(),
    ]
    return Classifier(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *hidden), 4096, classes)
