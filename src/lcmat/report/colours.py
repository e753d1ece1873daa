"""One look for each method, the same on every page: a colour that the colour-blind can tell, and a shape of marker."""

from collections.abc import Iterable
from dataclasses import dataclass

COLOURS = 8
SHAPES = ("circle", "square", "diamond", "triangle")

# The order decides the look; a new method goes to the end, so that old pages and new ones agree.
_KNOWN = (
    "lcmat-s",
    "craig",
    "herding",
    "k-center",
    "gradmatch",
    "glister",
    "adacore",
    "grand",
    "forgetting",
    "entropy",
    "least-confidence",
    "margin",
    "contextual-diversity",
    "el2n",
)


@dataclass(frozen=True)
class Look:
    """The number of a colour of the style sheet (0 is the neutral one of baselines) and a shape of marker."""

    colour: int
    shape: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name: known methods have their own, others the first that is free on this page.

    Example:
        >>> looks(["uniform", "lcmat-s", "my method"])["lcmat-s"] == looks(["lcmat-s", "craig"])["lcmat-s"]
        True
    """
    found: dict[str, Look] = {}
    names = list(dict.fromkeys(names))
    taken = {_KNOWN.index(name) for name in names if name in _KNOWN}
    free = (place for place in range(len(_KNOWN) + len(names)) if place not in taken)
    for name in names:
        if name.startswith("uniform"):
            found[name] = Look(0, "circle")
        else:
            place = _KNOWN.index(name) if name in _KNOWN else next(free)
            found[name] = Look(1 + place % (COLOURS - 1), SHAPES[place // (COLOURS - 1) % len(SHAPES)])
    return found
