"""How well networks train on a subset, with random sets of the same size beside it."""

from lcmat.evaluation.protocol import evaluate, gather
from lcmat.evaluation.result import Report
from lcmat.evaluation.rows import Row

__all__ = ["Report", "Row", "evaluate", "gather"]
