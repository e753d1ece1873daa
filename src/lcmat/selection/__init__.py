"""Choosing the samples to keep, from Signals alone."""

from lcmat.selection import by_chance, by_curvature, by_geometry, by_gradient  # each registers its methods
from lcmat.selection.api import random_like, select
from lcmat.selection.registry import SELECTORS, SelectorFacts, selectors

__all__ = [
    "SELECTORS",
    "SelectorFacts",
    "by_chance",
    "by_curvature",
    "by_geometry",
    "by_gradient",
    "random_like",
    "select",
    "selectors",
]
