"""All that a training of an evaluation depends on, beside its data, its network and its seed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from lcmat.evaluation.plan import Entry
from lcmat.training import precision
from lcmat.types import ImageData, Splits, SyntheticSet


@dataclass(frozen=True)
class Settings:
    """The settings of every training; either epochs or steps is given."""

    epochs: int | None
    steps: int | None
    batch_size: int
    lr: float
    schedule: str
    optimizer: str
    device: str
    precision: str
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    augment: bool | str = True
    cutmix: float = 0.0

    def in_steps(self, n: int) -> "Settings":
        """The same with as many steps, for sets of every size, as these epochs of n samples take."""
        if self.epochs is None:
            return self
        return replace(self, epochs=None, steps=self.epochs * math.ceil(n / self.batch_size))


# How papers train on what is kept: on selected subsets as in LCMat's appendix, on condensed sets as in Efficient
# Dataset Condensation (Kim et al., ICML 2022), DSA without cutout beside CutMix.
PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "selection": {"epochs": 200, "batch_size": 128, "lr": 0.1, "schedule": "cosine"},
    "condensation": {
        "epochs": 1000,
        "batch_size": 64,
        "lr": 0.01,
        "schedule": "drops",
        "nesterov": False,
        "augment": "color_crop_flip_scale_rotate",
        "cutmix": 0.5,
    },
}


def check_kinds(data: object, subsets: object, nets: object, seeds: object) -> None:
    """Refuse what is easily given instead of what `evaluate` takes.

    Raises:
        TypeError: for one part of the data, subsets without names, networks that are no names, or a number of seeds.
    """
    if not isinstance(data, Splits):
        raise TypeError(f"expected both parts of the data, as lcmat.load gives them, got {type(data).__name__}")
    if not isinstance(subsets, Mapping):
        raise TypeError(f"expected subsets by name, such as {{'lcmat-s': subset}}, got {type(subsets).__name__}")
    for net in nets if isinstance(nets, list | tuple) else [nets]:
        if not isinstance(net, str):
            raise TypeError(
                "expected networks by name, since every training starts one with fresh weights, got "
                f"{type(net).__name__}; lcmat.nets() lists them"
            )
    if not isinstance(seeds, Iterable):
        raise TypeError(f"expected the seeds one by one, such as range({seeds}), got {seeds!r}")


def check_budget(budget: str, epochs: int | None, steps: int | None) -> None:
    """Refuse a budget that is none, and two at once.

    Raises:
        ValueError: naming what was expected.
    """
    if budget not in ("epochs", "steps"):
        raise ValueError(f"expected a budget of 'epochs' or 'steps', held equal over the sizes, got {budget!r}")
    if epochs is not None and steps is not None:
        raise ValueError(f"expected epochs or steps, got both ({epochs} and {steps}); leave one out")


def choose_protocol(name: str, sets: Mapping[str, Any]) -> str:
    """The protocol that is meant: with 'auto' that of condensation where a synthetic set is among the sets.

    Raises:
        ValueError: for an unknown protocol.
    """
    if name == "auto":
        given = [item for own in sets.values() for item in (own if isinstance(own, list | tuple) else [own])]
        return "condensation" if any(isinstance(item, SyntheticSet) for item in given) else "selection"
    if name not in PROTOCOLS:
        raise ValueError(f"expected a protocol of auto, {', '.join(PROTOCOLS)}, got {name!r}")
    return name


def make_settings(name: str, device: torch.device, **given: Any) -> Settings:
    """The settings of a protocol, with those that were given in place of its own; None stands for not given."""
    chosen = {**PROTOCOLS[name], **{key: value for key, value in given.items() if value is not None}}
    if chosen.get("steps") is not None:
        chosen["epochs"] = None
    chosen.setdefault("steps", None)
    return Settings(device=device.type, precision=precision.resolve("auto", device), **chosen)


def describe_augmentation(settings: Settings, data: Splits) -> str:
    """The augmentation in words."""
    if not settings.augment or not isinstance(data.train, ImageData):
        return "none"
    if settings.augment is True:
        return "random crop and flip" if data.train.flip else "random crop"
    operations = settings.augment.split("_")
    names = ", ".join(name for name in operations if name != "flip" or data.train.flip)
    mixing = f", CutMix with probability {settings.cutmix:g}" if settings.cutmix else ""
    return f"DSA for each image ({names}){mixing}"


def describe_labels(entries: Sequence[Entry]) -> str:
    """Whether labels are hard or soft, and where soft ones come from."""
    soft = {
        f"{entry.name}: {first.label_kind}"
        for entry in entries
        if isinstance(first := entry.first, SyntheticSet) and first.soft is not None
    }
    given = any(entry.targets is not None for entry in entries)
    if not soft:
        return "soft, given for every sample" if given else "hard"
    return "; ".join([*sorted(soft), f"all others: {'soft, given for every sample' if given else 'hard'}"])
