"""From a specification such as 'convnet:width=32' to a network with fresh weights."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from lcmat import seeding
from lcmat.networks.registry import NETS, Builder, NetworkFacts
from lcmat.registry import Entry, split_options
from lcmat.types import Data, ImageData


def build(spec: str | nn.Module, data: Data, *, seed: int = 0) -> nn.Module:
    """A network for this data, its weights drawn from `seed`.

    The initialisation is torch's own for each layer, drawn on the CPU, so that a seed gives the same weights on every
    device; the global generators are left as they were.

    Args:
        spec: a name, with options as in 'convnet:width=32,depth=3'; or a module, which is returned as it is.
        data: what the network is for; the shape of a sample and the number of classes are taken from it.
        seed: of the weights.

    Raises:
        ValueError: for an unknown network or an option outside its range, or a network for images and other data.
        TypeError: for an unknown option (the valid ones are listed) or one of a wrong type.
    """
    if isinstance(spec, nn.Module):
        return spec
    entry, options = parse(spec)
    if entry.facts.images_only and not isinstance(data, ImageData):
        raise ValueError(f"{entry.name} is for images, but the data are feature vectors; use 'mlp' for these")
    with seeding.isolated(seed, "initialisation"):
        return entry.function(tuple(data.inputs.shape[1:]), len(data.class_names), **options)


def nets() -> dict[str, str]:
    """Name -> one line on the network, with its options."""
    return NETS.describe()


def parse(spec: str) -> tuple[Entry[Builder, NetworkFacts], Mapping[str, Any]]:
    """The registered network and its options.

    Example:
        >>> entry, options = parse("convnet:width=32,depth=2")
        >>> entry.name, options
        ('convnet', {'width': 32, 'depth': 2})
    """
    if not isinstance(spec, str):
        raise TypeError(f"expected the name of a network or an nn.Module, got {type(spec).__name__}")
    name, given = split_options(spec)
    entry = NETS.find(name)
    return entry, entry.parse_options(given)
