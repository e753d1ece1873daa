"""A selector or condenser with its options, as a text such as 'lcmat-s:rho=0.5' names it."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lcmat.condensation import CONDENSERS
from lcmat.registry import split_options
from lcmat.selection import SELECTORS
from lcmat.selection.registry import SelectorFacts, facts_of
from lcmat.signals import STATISTICS
from lcmat.study import values
from lcmat.study.settings import try_options

POINTS = ("last", "all")  # which of the proxy's points a method looks at, where it could look at several


@dataclass(frozen=True)
class Method:
    """A selector or a condenser with options.

    Attributes:
        text: as it stands in the file, such as 'lcmat-s:rho=0.5'; it names the method in all tables.
        name: as registered.
        options: those that were given.
        validation: share of the data that is held out of the selection and given to the method as validation Signals.
        statistics: of batch normalisation, as `lcmat.extract` takes them.
        all_points: whether it looks at all points of the proxy's path that the study keeps, not at the last alone.
    """

    text: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    validation: float = 0.0
    all_points: bool = False
    statistics: str = "running"

    @property
    def condenses(self) -> bool:
        """Whether it makes samples instead of choosing them."""
        return self.name in CONDENSERS

    @property
    def needs_proxy(self) -> bool:
        """Whether it looks at a trained network."""
        return not self.condenses and not set(self._defaulted_facts().needs) <= {"labels"}

    @property
    def needs_record(self) -> bool:
        """Whether it wants to know how the proxy did on every sample after every epoch."""
        return self.needs_proxy and "record" in self._defaulted_facts().needs

    def _defaulted_facts(self) -> SelectorFacts:
        defaults = {name: option.default for name, option in SELECTORS.find(self.name).options.items()}
        return facts_of(self.name, {**defaults, **self.options})


def read_method(value: Any) -> Method:
    """A method with options from its text.

    Raises:
        ValueError: for an unknown method, or a value out of range; near names are suggested.
        TypeError: for an unknown option, or a value of a wrong type.

    Example:
        >>> read_method("lcmat-s:rho=0.5").options, read_method("gradmatch:validation=0.1").validation
        ({'rho': 0.5}, 0.1)
    """
    text = values.text(value)
    name, given = split_options(text)
    registry: Any = CONDENSERS if name in CONDENSERS else SELECTORS
    if name not in SELECTORS and name not in CONDENSERS:
        names = [entry.name for entry in (*SELECTORS, *CONDENSERS)]
        near = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown method {name!r}; {hint}valid: {', '.join(names)}")
    share = 0.0
    if name in SELECTORS and SELECTORS.find(name).facts.validation and "validation" in given:
        share = values.share(float(given.pop("validation")))
    all_points = False
    if name in SELECTORS and SELECTORS.find(name).facts.several_points and "points" in given:
        all_points = values.one_of(POINTS)(given.pop("points")) == "all"
    statistics = "running"
    if name in SELECTORS and "logits" in SELECTORS.find(name).facts.needs and "statistics" in given:
        statistics = values.one_of(STATISTICS)(given.pop("statistics"))
    options = registry.find(name).parse_options(given)
    if name in SELECTORS:
        try_options(name, options)
    return Method(text, name, options, share, all_points, statistics)
