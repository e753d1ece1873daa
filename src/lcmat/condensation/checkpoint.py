"""Checkpoints: a killed condensation goes on from the end of a block of steps as if nothing had happened.

A block begins with a new network, so that no network has to be kept: samples, optimiser and generators are all.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lcmat import files
from lcmat.condensation.loop import Loop

NAME = "condensation"


@dataclass
class Progress:
    """How far a condensation has come.

    Attributes:
        step: steps done.
        seconds: spent on them, over all resumed parts.
        losses: mean loss of each block.
    """

    step: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)


class Checkpoint:
    """The checkpoint of one condensation in one folder; without a folder it does nothing.

    Attributes:
        interval: seconds between two of them; at most these and the block under way are lost.
    """

    interval = 10.0

    def __init__(self, folder: str | Path | None, config: Mapping[str, Any]) -> None:
        self._folder = None if folder is None else Path(folder)
        self._config = dict(config)
        self._saved = time.monotonic()

    @property
    def place(self) -> str:
        """Where the last good state can be found, in words."""
        return "" if self._folder is None else f"; the last good state is kept in {self._folder}"

    def load(self, loop: Loop) -> Progress:
        """Bring the loop to where the checkpoint was written, if there is one.

        Raises:
            ValueError: when the folder holds the checkpoint of another condensation, or a damaged one.
        """
        if self._folder is None or not (self._folder / f"{NAME}.json").exists():
            return Progress()
        meta, tensors = files.load_artifact(self._folder, NAME)
        self._check(meta.get("config"))
        try:
            with torch.no_grad():
                for learned, name in zip(loop.learned, ("stored", "marks"), strict=False):
                    learned.copy_(tensors[name])
            for key, value in tensors.items():
                kind, _, name = key.partition("/")
                if kind == "generator":
                    loop.generators[name].set_state(value)
                elif kind == "optimiser":
                    place, _, entry = name.partition("/")
                    loop.optimiser.state[loop.learned[int(place)]][entry] = _like(value, entry, loop)
            loop.follower.drawn = int(meta["networks_drawn"])
            return Progress(int(meta["step"]), float(meta["seconds"]), [float(loss) for loss in meta["losses"]])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self._folder} does not hold a whole checkpoint of a condensation: {error}") from None

    def save(self, loop: Loop, progress: Progress, *, finished: bool) -> None:
        """Write the state at the end of a block, if the last one is long enough ago or the work is finished."""
        if self._folder is None or not (finished or time.monotonic() - self._saved >= self.interval):
            return
        tensors = dict(zip(("stored", "marks"), loop.learned, strict=False))
        for place, learned in enumerate(loop.learned):
            for entry, value in loop.optimiser.state[learned].items():
                tensors[f"optimiser/{place}/{entry}"] = torch.as_tensor(value)
        tensors |= {f"generator/{name}": draws.get_state() for name, draws in loop.generators.items()}
        meta = {
            "format": 1,
            "step": progress.step,
            "seconds": progress.seconds,
            "losses": progress.losses,
            "networks_drawn": loop.follower.drawn,
            "config": self._config,
        }
        files.save_artifact(self._folder, NAME, meta, tensors)
        self._saved = time.monotonic()

    def _check(self, found: Any) -> None:
        # What went through JSON has lists for tuples.
        for name, value in self._config.items():
            other = found.get(name) if isinstance(found, dict) else None
            if _plain(other) != _plain(value):
                raise ValueError(
                    f"{self._folder} holds the checkpoint of another condensation: its {name} is {other!r}, "
                    f"asked for is {value!r}; name another folder"
                )


def _like(value: Tensor, entry: str, loop: Loop) -> Tensor:
    """A part of the state where the optimiser wants it; Adam counts its steps on the CPU, unless they are captured."""
    on_device = entry != "step" or loop.device.type == "cuda"
    return value.to(loop.device) if on_device else value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    return value
