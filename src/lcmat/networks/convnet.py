"""The ConvNet of the condensation papers: Zhao et al., Dataset Condensation with Gradient Matching, ICLR 2021."""

from torch import nn

from lcmat.networks.registry import NETS, Classifier, NetworkFacts, check_sizes


@NETS.add(
    "convnet",
    "ConvNet for images: blocks of 3 × 3 convolution, instance norm, ReLU, 2 × 2 average pool",
    facts=NetworkFacts(images_only=True),
)
def convnet(shape: tuple[int, ...], classes: int, *, width: int = 128, depth: int = 3) -> Classifier:
    """`depth` blocks of `width` channels: 320,010 parameters for 3 × 32 × 32 and 10 classes.

    A pool is left out where it would leave a single pixel: the mean of a map that was just normalised says little.

    Args:
        shape: of one sample, (channels, height, width).
        classes: number of logits.
        width: channels of every block.
        depth: number of blocks.
    """
    check_sizes(width=width, depth=depth)
    channels, rows, columns = shape
    layers: list[nn.Module] = []
    for _ in range(depth):
        # One group for each channel: instance norm with an affine map.
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(width, width), nn.ReLU()]
        channels = width
        if min(rows, columns) >= 4:
            layers.append(nn.AvgPool2d(2))
            rows, columns = rows // 2, columns // 2
    return Classifier(nn.Sequential(*layers, nn.Flatten()), width * rows * columns, classes)
