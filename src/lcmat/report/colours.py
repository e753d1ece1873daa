"""One look for each method, the same on every page: a colour that the colour-blind can tell, and a shape of marker."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

COLOURS = 8
SHAPES = ("circle", "square", "diamond", "triangle", "wedge")

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
    "lcmat-c",
    "dm",
    "dsa",
    "dc",
    "kip",
    "infobatch",
    "auto",
    "facility-location",
    "graph-cut",
    "log-determinant",
    "prototypes",
    "ccs",
    "moderate",
    "cal",
    "dual",
)
# Baselines and references: without a colour of their own.
_NEUTRAL = {"uniform": "circle", "random": "square", "full": "diamond"}
_METHOD = re.compile(r"(?:static:)?([\w-]+)(?=$|[:,(]| \()")


@dataclass(frozen=True)
class Look:
    """The number of a colour of the style sheet (0 is the neutral one of baselines) and a shape of marker."""

    colour: int
    shape: str


_LOOKS = tuple(Look(1 + place % (COLOURS - 1), shape) for shape in SHAPES for place in range(COLOURS - 1))


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name: a method's own, on every page the same.

    Of several variants of a method on one page, such as 'lcmat-s:rho=0.5' beside 'lcmat-s', the plain one or the first
    has it. The others, and names that lcmat does not know, get a colour that no other has here, as long as there is
    one; where the search begins is decided by their letters, so that it seldom differs from page to page.

    Example:
        >>> looks(["uniform", "lcmat-s", "my method"])["lcmat-s"] == looks(["lcmat-s", "craig"])["lcmat-s"]
        True
    """
    names = list(dict.fromkeys(names))
    found: dict[str, Look] = {}
    for name in sorted(names, key=lambda name: method_of(name) != name):
        method = method_of(name)
        own = Look(0, _NEUTRAL[method]) if method in _NEUTRAL else _LOOKS[_KNOWN.index(method)] if method else None
        if own and (own.colour == 0 or own not in found.values()):
            found[name] = own
    for name in names:
        if name not in found:
            found[name] = _free(name, set(found.values()))
    return {name: found[name] for name in names}


def line_colours(names: Iterable[str]) -> dict[str, int]:
    """The colour of each name's look, for lines without markers, where a shape tells nothing.

    Where two looks share a colour, the first has it, and the other gets one that is free here, as long as there is one.

    Example:
        >>> found = line_colours(["craig", "dm", "uniform"])
        >>> looks(["craig"])["craig"].colour == looks(["dm"])["dm"].colour == found["craig"] != found["dm"]
        True
    """
    own = {name: look.colour for name, look in looks(names).items()}
    free = [colour for colour in range(1, COLOURS) if colour not in own.values()]
    found: dict[str, int] = {}
    for name, colour in own.items():
        taken = colour != 0 and colour in found.values()
        found[name] = free.pop(0) if taken and free else colour
    return found


def method_of(name: str) -> str:
    """The method that a name on a page stands for; empty where it stands for none that has a look of its own.

    Example:
        >>> method_of("lcmat-s:rho=0.5"), method_of("static:craig"), method_of("mine")
        ('lcmat-s', 'craig', '')
    """
    found = _METHOD.match(name)
    return found[1] if found and (found[1] in _KNOWN or found[1] in _NEUTRAL) else ""


def _free(name: str, taken: set[Look]) -> Look:
    """A look for a name without one of its own: in a colour that nobody has, or else at least one that nobody has."""
    first = int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(_LOOKS)
    around = [*_LOOKS[first:], *_LOOKS[:first]]
    colours = {look.colour for look in taken}
    unseen = [look for look in around if look.colour not in colours] or [look for look in around if look not in taken]
    return (unseen or around)[0]
