"""From a data set to subsets in run folders: load, train a proxy, extract its Signals, select, save.

A stage that is done already is skipped, so that an interrupted run goes on where it stopped.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from lcmat import runtime
from lcmat.data import load
from lcmat.networks import build
from lcmat.selection import select
from lcmat.signals import extract
from lcmat.study.settings import Settings, default_net
from lcmat.study.store import Run
from lcmat.training import log_of, train
from lcmat.training.settings import check_data
from lcmat.types import Data, Signals, Splits, Subset

# (stage, steps done, steps in all)
Progress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Machine:
    """Where to work and with how much memory; nothing here decides a result.

    Attributes:
        device: such as 'cpu' or 'cuda:1'; chosen when None.
        memory: for the selection, such as '4GB'; a share of what is free when None.
        progress: told of every step.
    """

    device: str | None = None
    memory: str | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        runtime.pick_device(self.device)
        if self.memory is not None:
            runtime.parse_memory(self.memory)

    def follow(self, stage: str) -> Callable[[int, int], None] | None:
        """A callback for one stage."""
        progress = self.progress
        return None if progress is None else lambda done, total: progress(stage, done, total)


@dataclass(frozen=True, eq=False)
class Look:
    """What a proxy says of the data, how it was trained, and the seconds that both took."""

    signals: Signals | list[Signals]
    training: Mapping[str, Any]
    seconds: Mapping[str, float]


def read(settings: Settings) -> tuple[Splits, Settings, float]:
    """The data, the settings with a proxy network that suits it, and the seconds that loading took."""
    start = time.perf_counter()
    splits = load(settings.source, quiet=True, **settings.reading)
    seconds = time.perf_counter() - start
    settings = replace(settings, net=settings.net or default_net(splits.train))
    _check_fit(settings, splits.train)
    return splits, settings, seconds


def read_again(run: Run) -> Splits:
    """The data of a run.

    Raises:
        ValueError: when its source holds other data by now.
    """
    splits, _, _ = read(run.settings)
    for part, was in ((splits.train, run.data["fingerprint"]), (splits.test, run.data["test_fingerprint"])):
        if part.fingerprint != was:
            raise ValueError(
                f"{run.settings.source} no longer holds the data that {run.path} was chosen from, or its test part; "
                "restore it, or select again"
            )
    return splits


def choose(runs: Sequence[Run], splits: Splits, seed: int, machine: Machine) -> list[Run]:
    """Choose the subsets of these runs with one seed, and save them in the run folders.

    With a run's own seed this completes the run; with another it is a repeat, for independent evaluations. Runs whose
    proxies would be the same share one.
    """
    looks: dict[Hashable, Look] = {}
    done = []
    for run in runs:
        own = seed == run.settings.seed
        if run.subsets(seed) and (run.complete or not own):
            done.append(run)
            continue
        key = run.settings.proxy_key
        if key not in looks:
            looks[key] = _look(run, splits.train, seed, machine)
        # A repeat takes the run's sizes: a coverage would be reached by another number of samples each time.
        settings = run.settings
        budget = {settings.budget: settings.amounts} if own else {"count": [len(subset) for subset in run.subsets()]}
        start = time.perf_counter()
        subsets = _select(settings, looks[key].signals, budget, seed, machine)
        seconds = {**run.seconds, **looks[key].seconds, "select": time.perf_counter() - start}
        run.save_subsets(subsets, seed)
        done.append(_complete(run, looks[key], seconds) if own else run)
    return done


def _check_fit(settings: Settings, data: Data) -> None:
    """Refuse what cannot be done with this data before anything is written."""
    if settings.budget == "count" and settings.amounts[-1] > len(data):
        raise ValueError(
            f"expected a count of at most {len(data):,}, the samples there are, got {settings.amounts[-1]}"
        )
    build(settings.net, data)
    if settings.needs_proxy:
        check_data(data)


def _complete(run: Run, look: Look, seconds: Mapping[str, float]) -> Run:
    return run.update(seconds=seconds, training=look.training, peak_memory_mb=runtime.peak_memory_mb(), complete=True)


def look_without_proxy(data: Data) -> Look:
    """What is known of the data without a network."""
    return Look(Signals(labels=data.labels, fingerprint=data.fingerprint, class_names=data.class_names), {}, {})


def look_with_proxy(
    data: Data,
    *,
    net: str,
    epochs: int,
    points: Sequence[int],
    record: bool,
    seed: int,
    checkpoint: Path,
    machine: Machine,
    statistics: str = "running",
    batch_size: int = 128,
    lr: float = 0.1,
    momentum: float = 0.9,
    weight_decay: float = 5e-4,
    schedule: str = "constant",
    optimizer: str = "sgd",
) -> Look:
    """Train a proxy as `lcmat.train` does, or go on from its checkpoint, and extract what selection needs.

    Args:
        data: to train on and to look at.
        net: of the proxy; it and what is not named here are as `lcmat.train` takes them.
        epochs: of its training.
        points: epochs whose states are looked at; none for the end alone.
        record: whether to keep how it did on every sample after every epoch.
        seed: of the training.
        checkpoint: folder from which it goes on.
        machine: to work on.
        statistics: of batch normalisation, as `lcmat.extract` takes them.
        batch_size: of the training, like all that follow.
        lr: rate.
        momentum: of SGD.
        weight_decay: of the optimiser.
        schedule: of the rate.
        optimizer: 'sgd' or 'adam'.
    """
    model = train(
        net,
        data,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        momentum=momentum,
        weight_decay=weight_decay,
        schedule=schedule,
        optimizer=optimizer,
        seed=seed,
        snapshots=points,
        record=record,
        checkpoint=checkpoint,
        device=machine.device,
        progress=machine.follow(f"training the proxy, seed {seed}"),
    )
    log = log_of(model)
    assert log is not None
    start = time.perf_counter()
    signals = extract(model, data, points=points or None, device=machine.device, statistics=statistics)
    seconds = {"train": log.seconds, "extract": time.perf_counter() - start}
    return Look(signals, log.config, seconds)


def _look(run: Run, data: Data, seed: int, machine: Machine) -> Look:
    settings = run.settings
    if not settings.needs_proxy:
        return look_without_proxy(data)
    return look_with_proxy(
        data,
        net=settings.net,
        epochs=settings.epochs,
        points=settings.points,
        record=settings.needs_record,
        seed=seed,
        checkpoint=run.proxy_checkpoint(seed),
        machine=machine,
    )


def _select(
    settings: Settings,
    signals: Signals | list[Signals],
    budget: Mapping[str, Sequence[Any]],
    seed: int,
    machine: Machine,
) -> list[Subset]:
    return select(
        signals,
        settings.method,
        balance=settings.balance,
        seed=seed,
        memory=machine.memory,
        **{name: list(amounts) for name, amounts in budget.items()},
        **settings.options,
    )
