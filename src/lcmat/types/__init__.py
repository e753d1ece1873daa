"""The values that flow through lcmat: frozen, and checked when they are made."""

from typing import TypeAlias

from lcmat.types.data import Data, FeatureData, ImageData, Splits
from lcmat.types.signals import Array, Record, Signals
from lcmat.types.subset import Picks, Subset
from lcmat.types.synthetic import SyntheticSet

# What is trained on instead of all the data.
Reduced: TypeAlias = Subset | SyntheticSet

__all__ = [
    "Array",
    "Data",
    "FeatureData",
    "ImageData",
    "Picks",
    "Record",
    "Reduced",
    "Signals",
    "Splits",
    "Subset",
    "SyntheticSet",
]
