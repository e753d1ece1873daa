"""Condensation: a few synthetic samples of each class from which fresh networks train well."""

from lcmat.condensation import methods  # registers them
from lcmat.condensation.api import DivergenceError, condense
from lcmat.condensation.registry import CONDENSERS, CondenserFacts, Recipe, condensers

__all__ = ["CONDENSERS", "CondenserFacts", "DivergenceError", "Recipe", "condense", "condensers", "methods"]
