"""Networks that several pieces of work look with, trained once."""

import copy
import time
from collections.abc import Callable
from pathlib import Path

from torch import nn

from lcmat import files
from lcmat.training.log import log_of

_SECONDS = "seconds.json"


class Proxies:
    """The networks that were looked with: whoever would train the same one gets it.

    Args:
        folder: keeps them for other processes; without it they are shared in this one alone.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, tuple[nn.Module, float]] = {}

    def get(self, name: str, train: Callable[[Path | None], nn.Module]) -> tuple[nn.Module, float]:
        """The network of a name, and the seconds of its training that this call did not take itself.

        With them everybody who looks with it is charged what it would have cost alone.

        Args:
            name: that stands for all that decides the network; a file name.
            train: called with a folder for a checkpoint, or None; from the checkpoint of a finished training it
                gives the same network back.

        Example:
            >>> proxies = Proxies()
            >>> first, _ = proxies.get("a", lambda _: nn.Linear(2, 2))
            >>> again, seconds = proxies.get("a", lambda _: nn.Linear(3, 3))
            >>> bool((first.weight == again.weight).all()), seconds > 0
            (True, True)
        """
        if name in self._known:
            model, seconds = self._known[name]
            return copy.deepcopy(model), seconds  # whoever looks with it may change it
        place = None if self._folder is None else self._folder / name
        start = time.perf_counter()
        model = train(place)
        took = time.perf_counter() - start
        seconds = took
        if place is not None:
            if (place / _SECONDS).exists():
                seconds = float(files.read_json(place / _SECONDS)["seconds"])
            else:
                log = log_of(model)  # which knows of what was trained before a kill
                seconds = took if log is None else max(took, log.seconds)
                files.write_json(place / _SECONDS, {"seconds": seconds})
        self._known[name] = copy.deepcopy(model), seconds
        return model, seconds - took
