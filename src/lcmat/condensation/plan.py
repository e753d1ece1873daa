"""Everything that the result of a condensation depends on, checked at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from lcmat import networks
from lcmat.condensation.registry import CONDENSERS, Recipe
from lcmat.condensation.views import check_network
from lcmat.training.settings import check_data
from lcmat.types import Data, ImageData
from lcmat.types.formation import check_factor

LABELS = ("hard", "soft")


@dataclass(frozen=True)
class Plan:
    """What was asked for, resolved.

    Attributes:
        method: the condenser's name.
        options: all of its options.
        recipe: what it made of them.
        per_class: stored samples of each class.
        net: the network, as a specification.
        factor: of multi-formation.
        classes: that are condensed, ascending.
        seed: of everything random.
        together: classes in one computation.
        labels: 'hard' or 'soft'.
    """

    method: str
    options: Mapping[str, Any]
    recipe: Recipe
    per_class: int
    net: str
    factor: int
    classes: tuple[int, ...]
    seed: int
    together: int
    labels: str

    def describe(self) -> dict[str, Any]:
        """The parts of the recipe in plain values; the objective stands in the method and its options."""
        recipe = {item.name: getattr(self.recipe, item.name) for item in fields(Recipe) if item.name != "objective"}
        own = {"net": self.net, "labels": self.labels, "per_class": self.per_class, "classes": list(self.classes)}
        return {**own, **recipe}


def make_plan(
    data: Data,
    method: str,
    options: Mapping[str, Any],
    *,
    per_class: int,
    net: str,
    factor: int,
    start: str | None,
    labels: str,
    classes: Sequence[int] | None,
    together: int | None,
    seed: int,
) -> Plan:
    """Check what was asked for against the data.

    Raises:
        ValueError: for an unknown method or network, a value out of range, data of one class, or classes that the
            method cannot condense apart from the others.
        TypeError: for an unknown option (the valid ones are listed) or data that are none.
    """
    entry = CONDENSERS.find(method)
    check_data(data)
    if per_class < 1:
        raise ValueError(f"expected per_class of at least 1, got {per_class}")
    if labels not in LABELS:
        raise ValueError(f"expected labels to be {' or '.join(map(repr, LABELS))}, got {labels!r}")
    chosen = {name: option.default for name, option in entry.options.items()} | entry.check_options(options)
    known = {"per_class": per_class} if entry.accepts("per_class") else {}
    recipe = entry.function(**known, **chosen)
    if start is not None:
        if recipe.objective is None and start != "real":
            raise ValueError(f"{method} gives what it starts from, so that start={start!r} means nothing")
        recipe = replace(recipe, start=start)
    check_factor(factor, tuple(data.inputs.shape[1:]))
    present = torch.bincount(data.labels, minlength=len(data.class_names)).nonzero().flatten().tolist()
    wanted = _read_classes(classes, present, data)
    if wanted != tuple(present) and not recipe.separable:
        reason = "its objective joins all classes" if recipe.joint else "its networks follow the synthetic samples"
        raise ValueError(
            f"{method} cannot condense some classes apart from the others: {reason}; leave classes out, or use a "
            "method such as dm or lcmat-c (or follow='real' for dc and dsa)"
        )
    if labels == "soft" and recipe.learn_labels:
        raise ValueError("labels are learned or come from a teacher, not both; leave out learn_labels or labels='soft'")
    if together is not None and together < 1:
        raise ValueError(f"expected together of at least 1, got {together}")
    net = net or default_net(data)
    if recipe.objective is not None and recipe.looks_at != "inputs":
        check_network(networks.build(net, data))
    at_once = len(wanted) if together is None or recipe.joint else together
    return Plan(method, chosen, recipe, per_class, net, factor, wanted, seed, at_once, labels)


def default_net(data: Data) -> str:
    """ConvNet-3 for images, narrower for tiny ones, and `mlp` for feature vectors."""
    if not isinstance(data, ImageData):
        return "mlp"
    return "convnet" if min(data.images.shape[2:]) >= 16 else "convnet:width=32"


def _read_classes(classes: Sequence[int] | None, present: list[int], data: Data) -> tuple[int, ...]:
    if classes is None:
        return tuple(present)
    wanted = sorted(int(index) for index in classes)
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(f"expected distinct classes, at least one, got {list(classes)}")
    for index in wanted:
        if index not in present:
            raise ValueError(f"expected classes from 0 to {len(data.class_names) - 1} that have samples, got {index}")
    return tuple(wanted)
