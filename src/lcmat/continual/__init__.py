"""Class-incremental learning with a small memory, filled by any selector or condenser."""

from lcmat.continual.fill import Asked, CondenserFill, Filler, SelectorFill, make_filler
from lcmat.continual.memory import Budget, Kept, Memory
from lcmat.continual.metrics import average_accuracy, forgetting
from lcmat.continual.result import Study
from lcmat.continual.run import run
from lcmat.continual.stream import Step, Stream, first_classes, make_stream

__all__ = [
    "Asked",
    "Budget",
    "CondenserFill",
    "Filler",
    "Kept",
    "Memory",
    "SelectorFill",
    "Step",
    "Stream",
    "Study",
    "average_accuracy",
    "first_classes",
    "forgetting",
    "make_filler",
    "make_stream",
    "run",
]
