"""lcmat makes labelled data sets small: see https://arxiv.org/abs/2303.04449 for the paper it implements.

Names are loaded when they are first used, so that `lcmat --help` need not wait for torch.
"""

from typing import TYPE_CHECKING, Any

from lcmat.version import __version__

if TYPE_CHECKING:
    from lcmat import continual as continual
    from lcmat import dynamic as dynamic
    from lcmat.condensation import condense, condensers
    from lcmat.data import load, sources
    from lcmat.evaluation import Report, evaluate
    from lcmat.landscape import CurvatureReport, curvature
    from lcmat.networks import nets
    from lcmat.selection import select, selectors
    from lcmat.signals import extract
    from lcmat.training import train
    from lcmat.types import FeatureData, ImageData, Record, Signals, Splits, Subset, SyntheticSet

_HOMES = {
    "condense": "lcmat.condensation",
    "condensers": "lcmat.condensation",
    "load": "lcmat.data",
    "sources": "lcmat.data",
    "Report": "lcmat.evaluation",
    "evaluate": "lcmat.evaluation",
    "CurvatureReport": "lcmat.landscape",
    "curvature": "lcmat.landscape",
    "nets": "lcmat.networks",
    "select": "lcmat.selection",
    "selectors": "lcmat.selection",
    "extract": "lcmat.signals",
    "train": "lcmat.training",
    "FeatureData": "lcmat.types",
    "ImageData": "lcmat.types",
    "Record": "lcmat.types",
    "Signals": "lcmat.types",
    "Splits": "lcmat.types",
    "Subset": "lcmat.types",
    "SyntheticSet": "lcmat.types",
}

# Packages whose own names are public, such as `lcmat.dynamic.Sampler`.
_PACKAGES = ("continual", "dynamic")

__all__ = [
    "CurvatureReport",
    "FeatureData",
    "ImageData",
    "Record",
    "Report",
    "Signals",
    "Splits",
    "Subset",
    "SyntheticSet",
    "__version__",
    "condense",
    "condensers",
    "curvature",
    "evaluate",
    "extract",
    "load",
    "load_subset",
    "nets",
    "select",
    "selectors",
    "sources",
    "train",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "load_subset":
        return importlib.import_module("lcmat.types").Subset.load
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"lcmat.{name}")
    raise AttributeError(f"module 'lcmat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*__all__, *_PACKAGES))


if TYPE_CHECKING:
    load_subset = Subset.load
