"""The demo: the main job on scikit-learn's images of digits, small enough for a laptop."""

from collections.abc import Callable
from pathlib import Path

from lcmat import runtime
from lcmat.evaluation import Report
from lcmat.study.comparison import Protocol, compare
from lcmat.study.pipeline import Machine, Progress, read
from lcmat.study.settings import Settings
from lcmat.study.store import Run

METHODS = ("auto", "lcmat-s", "craig", "uniform")
NET = "convnet:width=32"
FRACTIONS = (0.02, 0.1)
PROXY_EPOCHS = 10
EPOCHS = 60


def run_demo(folder: Path, seeds: int, progress: Progress, say: Callable[[str], None]) -> tuple[Report, Path]:
    """Select with each method and seed, train on what is kept and on everything, and write the report.

    Args:
        folder: for a run folder of each method, the records and the page; an earlier demo there goes on.
        seeds: independent runs.
        progress: told of every step.
        say: told what was found.

    Returns:
        The report and the path of its page.
    """
    asked = {
        method: Settings(source="digits", method=method, amounts=FRACTIONS, net=NET, epochs=PROXY_EPOCHS)
        for method in METHODS
    }
    splits, _, seconds = read(asked[METHODS[0]])
    say(splits.summary())
    runs = [Run.begin(folder / method, settings, splits, seconds) for method, settings in asked.items()]
    protocol = Protocol(nets=(NET,), seeds=seeds, epochs=EPOCHS, full=True)
    with runtime.one_thread():  # images of 8 × 8 pixels have no work for more
        return compare(runs, protocol, folder, Machine(progress=progress), splits)
