"""Data sets of many kinds, read into memory as `ImageData` or `FeatureData`."""

from lcmat.data.loading import load, sources

__all__ = ["load", "sources"]
