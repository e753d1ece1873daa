"""Choosing anew while training: what each epoch visits, by what the model has learnt so far."""

from lcmat.dynamic.baselines import BASELINES
from lcmat.dynamic.cost import Cost
from lcmat.dynamic.indexed import Indexed
from lcmat.dynamic.loader import sampler_of
from lcmat.dynamic.request import methods
from lcmat.dynamic.result import Study
from lcmat.dynamic.sampler import Sampler
from lcmat.dynamic.study import compare
from lcmat.dynamic.training import Trained, train

__all__ = ["BASELINES", "Cost", "Indexed", "Sampler", "Study", "Trained", "compare", "methods", "sampler_of", "train"]
