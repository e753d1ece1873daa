"""The table of condensers; a condenser is a function from its options to a `Recipe`, which the one loop carries out.

Its keyword-only parameters are its options, but for `per_class`, the samples of each class, which is given to those
that declare it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import Tensor

from lcmat.condensation.views import View
from lcmat.registry import Registry

# (view of real samples, view of synthetic ones) -> a value for each class [K], or [1] for all together
Objective: TypeAlias = Callable[[View, View], Tensor]


@dataclass(frozen=True)
class Recipe:
    """How a condenser learns; the loop does the rest.

    Rates are in units of the data's standard deviation, per pixel or feature.

    Attributes:
        objective: what is minimised; None where nothing is learned.
        looks_at: what a network must say of a batch: gradients, features, or nothing but its inputs.
        match_head: whether gradients of the last layer are matched too.
        start: 'noise' or 'real' samples.
        lr: of the samples.
        optimizer: of the samples: 'sgd' or 'adam'.
        momentum: of 'sgd'.
        longest: no sample moves further than this in one step of 'sgd', momentum apart (root mean square).
        real_batch: real samples of each class in a step.
        synthetic_batch: synthetic samples of each class in a step, at most.
        augmentation: of real and synthetic samples alike, such as 'color_crop_cutout'.
        single: whether one operation is drawn at a time.
        period: steps with one network; then its weights are drawn anew, and pixels clamped to their range.
        follow: what the network is trained on between steps: 'real', 'synthetic' or nothing ('').
        network_steps: of its training after each step.
        network_batch: samples in each of these.
        network_lr: its learning rate.
        network_momentum: its momentum.
        network_decay: its weight decay.
        cutmix: probability of CutMix in its training.
        joint: whether the objective needs all classes together.
        learn_labels: whether labels are learned as well.
    """

    objective: Objective | None = None
    looks_at: Literal["gradients", "features", "inputs"] = "gradients"
    match_head: bool = True
    start: str = "real"
    lr: float = 0.1
    optimizer: Literal["sgd", "adam"] = "sgd"
    momentum: float = 0.5
    longest: float = 0.1
    real_batch: int = 64
    synthetic_batch: int = 128
    augmentation: str = ""
    single: bool = False
    period: int = 100
    follow: Literal["real", "synthetic", ""] = ""
    network_steps: int = 0
    network_batch: int = 64
    network_lr: float = 0.01
    network_momentum: float = 0.0
    network_decay: float = 0.0
    cutmix: float = 0.0
    joint: bool = False
    learn_labels: bool = False

    def __post_init__(self) -> None:
        for name, valid in (("start", ("noise", "real")), ("follow", ("real", "synthetic", ""))):
            if getattr(self, name) not in valid:
                raise ValueError(f"expected {name} to be {' or '.join(map(repr, valid))}, got {getattr(self, name)!r}")
        for name in ("lr", "longest", "network_lr"):
            if not getattr(self, name) > 0:
                raise ValueError(f"expected {name} above 0, got {getattr(self, name)}")
        for name in ("real_batch", "synthetic_batch", "network_batch", "period"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if self.network_steps < 0:
            raise ValueError(f"expected network_steps of at least 0, got {self.network_steps}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"expected a momentum in [0, 1), got {self.momentum}")
        if not 0 <= self.cutmix <= 1:
            raise ValueError(f"expected a probability cutmix in [0, 1], got {self.cutmix}")

    @property
    def separable(self) -> bool:
        """Whether each class can be condensed apart from the others, so that shards can be joined."""
        return not self.joint and self.follow != "synthetic"


@dataclass(frozen=True)
class CondenserFacts:
    """What users want to know of a condenser: the paper that defines it, and the cost of one step."""

    reference: str
    cost: str


CONDENSERS: Registry[Callable[..., Recipe], CondenserFacts] = Registry("condenser", reserved=("per_class",))


def condensers() -> dict[str, str]:
    """Name -> one-line description and options of every condenser."""
    return CONDENSERS.describe()
