"""The loss surfaces of T and S around a parameter point. The package is not called `curvature`: the function is."""

from lcmat.landscape.api import curvature
from lcmat.landscape.result import CurvatureReport

__all__ = ["CurvatureReport", "curvature"]
