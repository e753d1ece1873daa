"""The values that flow through lcmat: frozen, and checked when they are made."""

from lcmat.types.data import Data, FeatureData, ImageData, Splits
from lcmat.types.signals import Array, Record, Signals
from lcmat.types.subset import Picks, Subset
from lcmat.types.synthetic import SyntheticSet

__all__ = [
    "Array",
    "Data",
    "FeatureData",
    "ImageData",
    "Picks",
    "Record",
    "Signals",
    "Splits",
    "Subset",
    "SyntheticSet",
]
