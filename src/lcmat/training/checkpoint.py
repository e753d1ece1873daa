"""Checkpoints: a killed training goes on from the end of an epoch as if nothing had happened.

A checkpoint is a folder with `training.json` and a safetensors file, written atomically. It belongs to one training:
its configuration stands in it, and another one is refused. A finished training leaves its weights and its log there,
so that the same call gives them back without a step.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lcmat import files
from lcmat.training.state import TrainingState, state_on_cpu
from lcmat.types import Record

NAME = "training"


class Checkpoint:
    """The checkpoint of one training in one folder; without a folder it does nothing.

    Attributes:
        interval: seconds between two of them; at most these and the epoch under way are lost.
    """

    interval = 10.0

    def __init__(self, folder: str | Path | None, config: Mapping[str, Any], device: torch.device) -> None:
        self._folder = None if folder is None else Path(folder)
        self._config = config
        self._device = device
        self._saved = time.monotonic()

    def load(self, state: TrainingState) -> None:
        """Bring the state to where the checkpoint was written, if there is one.

        Raises:
            ValueError: when the folder holds the checkpoint of another training, or a damaged one.
        """
        if self._folder is None or not (self._folder / f"{NAME}.json").exists():
            return
        meta, tensors = files.load_artifact(self._folder, NAME)
        self._check(meta.get("config"))
        parts = _by_prefix(tensors)
        state.model.load_state_dict(parts.get("model", {}))
        state.optimiser.load(parts.get("optimiser", {}))
        state.epoch = int(meta["epoch"])
        state.seconds = float(meta["seconds"])
        state.losses = [float(loss) for loss in meta["losses"]]
        state.snapshots = {int(epoch): _by_prefix(tensors)[f"snapshot {epoch}"] for epoch in meta["snapshots"]}
        if "record" in parts:
            state.records = [Record(parts["record"]["correct"], parts["record"]["probability"])]
        for name, value in parts.get("generator", {}).items():
            self._generators(state)[name].set_state(value)

    def save(self, state: TrainingState, *, finished: bool) -> None:
        """Write the state at the end of an epoch, if the last one is long enough ago or the training is finished."""
        if self._folder is None or not (finished or time.monotonic() - self._saved >= self.interval):
            return
        tensors = {f"model/{name}": value for name, value in state_on_cpu(state.model).items()}
        for epoch, snapshot in state.snapshots.items():
            tensors |= {f"snapshot {epoch}/{name}": value for name, value in snapshot.items()}
        if (record := state.record()) is not None:
            tensors |= {"record/correct": record.correct, "record/probability": record.probability}
        if not finished:
            tensors |= {f"optimiser/{name}": value for name, value in state.optimiser.state().items()}
            generators = self._generators(state).items()
            tensors |= {f"generator/{name}": generator.get_state() for name, generator in generators}
        meta = {
            "format": 1,
            "epoch": state.epoch,
            "seconds": state.seconds,
            "losses": state.losses,
            "snapshots": list(state.snapshots),
            "config": dict(self._config),
        }
        files.save_artifact(self._folder, NAME, meta, tensors)
        self._saved = time.monotonic()

    def _generators(self, state: TrainingState) -> dict[str, torch.Generator]:
        """Everything that draws: order, augmentation, and the (forked) global generators, which dropout uses."""
        generators = {"order": state.order, "augmentation": state.augmentation, "global": torch.default_generator}
        if self._device.type == "cuda":
            generators["device"] = torch.cuda.default_generators[self._device.index]
        return generators

    def _check(self, found: Any) -> None:
        if not isinstance(found, dict):
            raise ValueError(f"{self._folder} holds a {NAME}.json without a configuration; is it damaged?")
        differences = [
            f"{name} ({found.get(name)!r} there, {self._config.get(name)!r} here)"
            for name in {**self._config, **found}
            if found.get(name) != self._config.get(name)
        ]
        if differences:
            raise ValueError(
                f"{self._folder} holds the checkpoint of another training: it differs in {', '.join(differences)}; "
                "give another folder, or delete this one to start anew"
            )


def _by_prefix(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Group tensors by what stands before the first slash of their names."""
    groups: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        prefix, _, name = key.partition("/")
        groups.setdefault(prefix, {})[name] = value
    return groups
