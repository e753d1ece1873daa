"""Networks by name: each has `features(x)`, `[n, d]`, and `head`, an `nn.Linear`; forward is `head(features(x))`.

A new network is a module of this package: a function registered with `@NETS.add`, imported below.
"""

from lcmat.networks import convnet, densenet, inception, mlp, resnet, vgg, wideresnet
from lcmat.networks.build import build, nets
from lcmat.networks.head import find_head
from lcmat.networks.registry import NETS

__all__ = [
    "NETS",
    "build",
    "convnet",
    "densenet",
    "find_head",
    "inception",
    "mlp",
    "nets",
    "resnet",
    "vgg",
    "wideresnet",
]
