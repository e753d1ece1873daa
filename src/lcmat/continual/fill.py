"""What goes into a memory: chosen by a selector or made by a condenser, both behind one small form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
from torch import nn

from lcmat import seeding
from lcmat.condensation import CONDENSERS, condense
from lcmat.continual.memory import Kept
from lcmat.selection import SELECTORS, select
from lcmat.selection.registry import facts_of
from lcmat.signals import extract
from lcmat.types import Data, Signals

# Gives the model that a selector looks at the data with; made when it is first asked for.
Look: TypeAlias = Callable[[], nn.Module]


@dataclass(frozen=True, eq=False)
class Asked:
    """What a filler is asked for at one step.

    Attributes:
        data: the candidates: what arrives, with what the memory holds of classes that return.
        amounts: class -> how many to keep of it, no more than there are candidates.
        look: gives the model to look at the candidates with.
        seed: of everything that is drawn.
        device: to compute on.
        checkpoint: a folder for work that takes long, or None.
        progress: called with (steps done, steps in all) of such work.
    """

    data: Data
    amounts: Mapping[int, int]
    look: Look
    seed: int
    device: torch.device | None = None
    checkpoint: Path | None = None
    progress: Callable[[int, int], None] | None = None


class Filler(Protocol):
    """One way of filling a memory; a third kind is another class of this form."""

    @property
    def name(self) -> str:
        """As in tables and figures."""
        ...

    @property
    def kind(self) -> str:
        """'selection' or 'condensation': which of the two figures it stands in."""
        ...

    @property
    def looks(self) -> bool:
        """Whether the result depends on the model that `look` gives."""
        ...

    @property
    def needs_record(self) -> bool:
        """Whether that model must have been trained on the candidates with a record."""
        ...

    def describe(self) -> dict[str, Any]:
        """All settings that decide the result, as JSON has them."""
        ...

    def fill(self, asked: Asked) -> dict[int, Kept]:
        """What to keep of each class, the most valuable first."""
        ...


@dataclass(frozen=True)
class SelectorFill:
    """Keeps what a selector picks, class by class, in pick order: a smaller memory is its prefix.

    Attributes:
        name: of the selector.
        options: its own.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "selection"

    def __post_init__(self) -> None:
        entry = SELECTORS.find(self.name)
        defaults = {name: option.default for name, option in entry.options.items()}
        object.__setattr__(self, "options", {**defaults, **entry.check_options(self.options)})

    @property
    def _needs(self) -> tuple[str, ...]:
        return facts_of(self.name, dict(self.options)).needs

    @property
    def looks(self) -> bool:
        """Not for methods that need no more than the labels."""
        return not set(self._needs) <= {"labels"}

    @property
    def needs_record(self) -> bool:
        """For methods that look at how the training went."""
        return "record" in self._needs

    def describe(self) -> dict[str, Any]:
        """Name and options."""
        return {"fill": self.name, "options": dict(self.options)}

    def fill(self, asked: Asked) -> dict[int, Kept]:
        """Select from the Signals of each class alone."""
        data = asked.data
        signals = extract(asked.look(), data, device=asked.device) if self.looks else Signals(labels=data.labels)
        kept = {}
        for index, amount in asked.amounts.items():
            rows = (data.labels == index).nonzero().flatten()
            own = signals.take(rows.to(signals.device))
            seed = seeding.derive(asked.seed, "memory", index)
            picks = select(own, self.name, count=amount, balance="none", seed=seed, **dict(self.options))
            kept[index] = Kept(data.inputs[rows[picks.indices]])
        return kept


@dataclass(frozen=True)
class CondenserFill:
    """Keeps what a condenser makes of the candidates.

    It is made once, when its classes arrive. A class that is no larger than its share is kept as it is, and a class
    that arrives alone, which has nothing to be told apart from, is kept by samples drawn at random. Condensed samples
    have no order of value: where a class is cut to fewer later, the first ones stay; the real samples are gone by
    then, and are not condensed again.

    Attributes:
        name: of the condenser.
        steps: of the condensation.
        options: its own.
    """

    name: str
    steps: int = 1000
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "condensation"
    looks: bool = False
    needs_record: bool = False

    def __post_init__(self) -> None:
        entry = CONDENSERS.find(self.name)
        defaults = {name: option.default for name, option in entry.options.items()}
        object.__setattr__(self, "options", {**defaults, **entry.check_options(self.options)})
        if self.steps < 1:
            raise ValueError(f"expected at least 1 step of condensation, got {self.steps}")

    def describe(self) -> dict[str, Any]:
        """Name, steps and options."""
        return {"fill": self.name, "steps": self.steps, "options": dict(self.options)}

    def fill(self, asked: Asked) -> dict[int, Kept]:
        """Condense all classes at once, as many of each as the largest share, and cut the others."""
        data, progress = asked.data, asked.progress
        sizes = torch.bincount(data.labels, minlength=len(data.class_names)).tolist()
        condensed = [index for index, amount in asked.amounts.items() if amount < sizes[index]]
        if len(condensed) == 1:
            condensed = []
        kept = {
            index: SelectorFill("uniform").fill(replace(asked, amounts={index: amount}))[index]
            for index, amount in asked.amounts.items()
            if index not in condensed
        }
        if not condensed:
            return kept
        made = condense(
            data.take(torch.isin(data.labels, torch.tensor(condensed)).nonzero().flatten()),
            self.name,
            per_class=max(asked.amounts[index] for index in condensed),
            steps=self.steps,
            seed=asked.seed,
            checkpoint=asked.checkpoint,
            device=asked.device,
            progress=None if progress is None else lambda done, total, _: progress(done, total),
            **dict(self.options),
        )
        samples = made.data()
        views = len(samples) // len(made)
        return kept | {
            index: Kept(samples.inputs[samples.labels == index], views).first(asked.amounts[index])
            for index in condensed
        }


def make_filler(name: str, *, condense_steps: int = 1000, options: Mapping[str, Any] | None = None) -> Filler:
    """The filler of a selector's or a condenser's name.

    Raises:
        ValueError: for an unknown name; the valid ones are listed.
        TypeError: for an unknown option.
    """
    if name in SELECTORS:
        return SelectorFill(name, options or {})
    if name in CONDENSERS:
        return CondenserFill(name, condense_steps, options or {})
    try:
        SELECTORS.find(name)
    except ValueError as error:
        raise ValueError(f"{error}; condensers: {', '.join(entry.name for entry in CONDENSERS)}") from None
    raise AssertionError("a name is in the registry or it is not")
