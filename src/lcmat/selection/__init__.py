"""Choosing the samples to keep, from Signals alone."""

from lcmat.selection import (  # each registers its methods
    automatic,
    by_chance,
    by_coverage,
    by_curvature,
    by_dynamics,
    by_geometry,
    by_gradient,
    by_pursuit,
    by_score,
    by_submodular,
    by_validation,
)
from lcmat.selection.api import random_like, select
from lcmat.selection.registry import SELECTORS, SelectorFacts, selectors

__all__ = [
    "SELECTORS",
    "SelectorFacts",
    "automatic",
    "by_chance",
    "by_coverage",
    "by_curvature",
    "by_dynamics",
    "by_geometry",
    "by_gradient",
    "by_pursuit",
    "by_score",
    "by_submodular",
    "by_validation",
    "random_like",
    "select",
    "selectors",
]
