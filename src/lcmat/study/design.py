"""What a study is: a grid of data, methods, amounts, networks and seeds, with the settings of all trainings."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lcmat.study.method import Method


@dataclass(frozen=True)
class Source:
    """One data set.

    Attributes:
        name: by which the study and the paper's tables call it.
        source: what `lcmat.load` reads.
        local: a folder in `LCMAT_DATA`, or a whole path, which is taken instead where it is.
        reading: further arguments of `lcmat.load`.
        classes: keep only so many classes, the first ones; 0 for all.
    """

    name: str
    source: str
    local: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    classes: int = 0


def locate(source: Source) -> str:
    """What to load: the local folder where it is, else the source itself."""
    local = Path(os.environ.get("LCMAT_DATA", "")) / source.local
    return str(local) if source.local and local.is_dir() else source.source


@dataclass(frozen=True)
class Proxy:
    """How the network is trained that selection looks at."""

    net: str = ""
    epochs: int = 10
    points: tuple[int, ...] = ()
    batch_size: int = 128
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "constant"
    optimizer: str = "sgd"

    def describe(self, among: tuple["Proxy", ...]) -> str:
        """What tells this proxy from the others, such as 'epochs 20, weight decay 0.001'; empty for a single one."""
        own = asdict(self)
        different = [name for name in own if len({repr(asdict(other)[name]) for other in among}) > 1]
        return ", ".join(f"{name.replace('_', ' ')} {own[name]}" for name in different)


@dataclass(frozen=True)
class Training:
    """How networks are trained on what is kept; None leaves it to the protocol of `lcmat.evaluate`."""

    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    schedule: str | None = None
    optimizer: str = "sgd"
    weighted: tuple[str, ...] = ()
    augment: bool | None = None


@dataclass(frozen=True)
class Condensation:
    """How condensers work; None leaves it to `lcmat.condense`."""

    steps: int = 1000
    net: str = ""
    factor: int = 1


@dataclass(frozen=True)
class Grid:
    """One block of a study; everything in it is combined with everything.

    Attributes:
        data: names of data sets.
        methods: what chooses or makes samples.
        budget: 'fraction' of the data, or samples 'per_class'.
        amounts: ascending.
        nets: trained on what is kept; none to choose only.
        proxies: the trainings of the network that selection looks at.
        full: whether the networks are trained on everything too.
    """

    data: tuple[str, ...]
    methods: tuple[Method, ...]
    budget: str
    amounts: tuple[float, ...]
    nets: tuple[str, ...]
    proxies: tuple[Proxy, ...]
    full: bool = False

    @property
    def protocol(self) -> str:
        """Of `lcmat.evaluate`."""
        return "condensation" if any(method.condenses for method in self.methods) else "selection"


@dataclass(frozen=True)
class Study:
    """A whole study.

    Attributes:
        name: of its file.
        title: of its page.
        about: what it shows, in sentences.
        sources: data sets by name.
        seeds: one independent run for each.
        grids: the blocks.
        training: of networks on what is kept.
        condensation: of condensers.
        made_once: whether what a condenser made under the first seed serves all seeds.
        timed: whether every amount is chosen on its own, and the time of it is a result.
        oracle: whether networks are tested after each epoch as well.
        reach: an accuracy whose time is asked for; this tests after each epoch too.
        show: parts of the page beside tables and curves.
        paper: the table of the paper's values, or None.
    """

    name: str
    title: str
    about: str
    sources: Mapping[str, Source]
    seeds: tuple[int, ...]
    grids: tuple[Grid, ...]
    training: Training = Training()
    condensation: Condensation = Condensation()
    made_once: bool = False
    timed: bool = False
    oracle: bool = False
    reach: float | None = None
    show: tuple[str, ...] = ()
    paper: Path | None = None
