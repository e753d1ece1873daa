"""Static and dynamic selection side by side: the same network, the same epochs, accuracy against seconds."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcmat import files, networks, runtime, seeding
from lcmat import training as plain
from lcmat.dynamic.arms import Arm, make_arms
from lcmat.dynamic.reselection import Asked
from lcmat.dynamic.result import Study, make_rows
from lcmat.dynamic.training import Trained, train
from lcmat.networks.build import parse as parse_net
from lcmat.selection import select
from lcmat.signals import extract
from lcmat.training.settings import check_loop
from lcmat.types import Data, Splits
from lcmat.version import __version__

DEFAULT_METHODS = ("static:lcmat-s", "lcmat-s", "craig", "random", "infobatch", "full")

# (trainings done, trainings in all, what comes next)
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Settings:
    """All that the trainings have in common and that decides their results."""

    net: str
    epochs: int
    proxy_epochs: int
    batch_size: int
    lr: float
    schedule: str
    looks: int
    device: str

    def __post_init__(self) -> None:
        if min(self.epochs, self.proxy_epochs, self.looks) < 1:
            raise ValueError(
                f"expected at least 1 epoch and 1 look, got {self.epochs}, {self.proxy_epochs} and {self.looks}"
            )
        check_loop(epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, schedule=self.schedule)
        if self.net:
            parse_net(self.net)


def compare(
    data: Splits,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    fractions: Sequence[float] = (0.1,),
    every: Sequence[int] = (1, 5),
    pools: Sequence[float | None] = (None,),
    warmup: int = 0,
    weighted: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    net: str = "resnet18",
    epochs: int = 200,
    proxy_epochs: int = 10,
    seeds: Sequence[int] = range(3),
    batch_size: int = 128,
    lr: float = 0.1,
    schedule: str = "cosine",
    looks: int = 10,
    records: str | Path | None = None,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
) -> Study:
    """Train one network in every way, with several seeds, and test it along the way.

    All arms of one fraction visit the same number of samples in an epoch and train for the same number of epochs;
    'infobatch' and 'full' train for as many epochs of their own. Under one seed all networks start from the same
    weights. The seconds of a static arm include its proxy and its selection, those of a dynamic one all its turns;
    testing is not counted.

    Args:
        data: to train and test on.
        methods: selectors (dynamic), 'static:SELECTOR', 'random', 'random:replacement', 'infobatch', 'full'.
        fractions: of the data that an epoch visits.
        every: R, epochs between two choices; each selector is tried with each.
        pools: shares of the data that a selector chooses from; None for all.
        warmup: first epochs of dynamic selectors that visit everything.
        weighted: selectors whose weights go into the loss.
        options: of selectors and baselines, by name, such as {'lcmat-s': {'rho': 0.1}}.
        net: the network.
        epochs: of each training.
        proxy_epochs: of the proxy of a static arm.
        seeds: one run of each arm for each.
        batch_size: of the trainings.
        lr: highest learning rate.
        schedule: of the rate.
        looks: how often each training is tested along the way.
        records: a JSON Lines file; trainings found in it are not repeated.
        device: to train on.
        progress: called with (trainings done, trainings in all, what comes next).

    Returns:
        The study, with its table and its page.

    Raises:
        ValueError: for an unknown method or network, or a value out of range, before anything is trained.
    """
    seeds = list(seeds)
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"expected distinct seeds, at least one, got {seeds}")
    place = runtime.pick_device(device)
    settings = Settings(net, epochs, proxy_epochs, batch_size, lr, schedule, min(looks, epochs), place.type)
    networks.build(net, data.train)
    arms = make_arms(
        methods, fractions, every, pools, n=len(data.train), epochs=epochs, warmup=warmup, weighted=weighted,
        options=options,
    )  # fmt: skip
    found, reused = _run(data, arms, seeds, settings, records, place, progress)
    notes = [*data.notes]
    if reused:
        notes.append(f"{reused} of {len(found)} trainings were done before and taken from the records.")
    if len(seeds) == 1:
        notes.append("One run of each: there are no intervals, and differences of a single run prove nothing.")
    elif (compared := sum(arm.fraction is not None for arm in arms)) > 1:
        notes.append(f"{compared} arms, each with its own 95 % intervals: one in twenty misleads by chance.")
    return Study(
        rows=make_rows(arms, found),
        records=found,
        protocol=_protocol(data, seeds, settings),
        notes=tuple(notes),
        name=data.name,
    )


def _run(
    data: Splits,
    arms: Sequence[Arm],
    seeds: Sequence[int],
    settings: Settings,
    path: str | Path | None,
    device: torch.device,
    progress: Progress | None,
) -> tuple[list[dict[str, Any]], int]:
    """The records of all trainings, and how many were there before."""
    known = {record["key"]: record for record in files.read_json_lines(path) if "key" in record} if path else {}
    cells = [(arm, seed) for seed in seeds for arm in arms]
    found, reused = [], 0
    for done, (arm, seed) in enumerate(cells):
        if progress:
            progress(done, len(cells), f"{arm.label}, seed {seed}")
        cell = _describe(data, arm, seed, settings)
        if cell["key"] in known:
            reused += 1
        else:
            known[cell["key"]] = {**cell, **_train(data, arm, seed, settings, device)}
            if path:
                files.append_json_line(path, known[cell["key"]])
        found.append({**known[cell["key"]], "name": arm.name})
    if progress:
        progress(len(cells), len(cells), "done")
    return found, reused


def _describe(data: Splits, arm: Arm, seed: int, settings: Settings) -> dict[str, Any]:
    """All that decides what a training gives, and its digest."""
    decisive = {
        "data": data.train.fingerprint,
        "test": data.test.fingerprint,
        "method": arm.method,
        "fraction": arm.fraction,
        "static": arm.static,
        "choose": dict(arm.choose),
        "seed": seed,
        "settings": asdict(settings),
        "lcmat": __version__,
    }
    key = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
    return {"key": key, "name": arm.name, **decisive}


def _train(data: Splits, arm: Arm, seed: int, settings: Settings, device: torch.device) -> dict[str, Any]:
    """One training; its curve has (epochs, seconds, accuracy) at some epochs, the last one included."""
    before: dict[str, float] = {}
    chosen, method, fraction, choose = data.train, arm.method, arm.fraction, dict(arm.choose)
    if arm.static:
        chosen, before = _choose_once(data.train, arm, seed, settings, device)
        method, fraction, choose = "full", None, {}
    curve: list[list[float]] = []
    epochs = {round((look + 1) * settings.epochs / settings.looks) for look in range(settings.looks)}

    def watch(model: nn.Module, done: int, seconds: float) -> None:
        if done in epochs:
            curve.append([done, sum(before.values()) + seconds, plain.accuracy(model, data.test, device=device)])

    model = networks.build(settings.net, data.train, seed=seeding.derive(seed, "dynamic", "initialisation"))
    trained = train(
        model, chosen, method, fraction, epochs=settings.epochs, choose=choose, batch_size=settings.batch_size,
        lr=settings.lr, schedule=settings.schedule, seed=seed, device=device, watch=watch,
    )  # fmt: skip
    return {
        "samples": len(data.train),
        "accuracy": curve[-1][2],
        "curve": curve,
        "visits": sum(trained.visits),
        "seconds": {**before, **_seconds(trained)},
        "machine": runtime.machine(),
    }


def _seconds(trained: Trained) -> dict[str, float]:
    cost = trained.cost
    return {"signals": cost.signals, "select": cost.select, "train": trained.seconds - cost.spent}


def _choose_once(
    data: Data, arm: Arm, seed: int, settings: Settings, device: torch.device
) -> tuple[Data, dict[str, float]]:
    """What a proxy's Signals make the selector keep, and the seconds that it took."""
    start = time.perf_counter()
    record = "record" in Asked(arm.method, arm.choose).needs
    proxy = plain.train(settings.net, data, epochs=settings.proxy_epochs, seed=seed, record=record, device=device)
    signals = extract(proxy, data, device=device)
    looked = time.perf_counter()
    subset = select(signals, arm.method, fraction=arm.fraction, seed=seed, **dict(arm.choose))
    chosen = subset.apply(data)
    return chosen, {"proxy": looked - start, "choice": time.perf_counter() - looked}


def _protocol(data: Splits, seeds: Sequence[int], settings: Settings) -> dict[str, Any]:
    return {
        "data": data.name,
        "data fingerprint": data.train.fingerprint,
        "train samples": len(data.train),
        "test samples": len(data.test),
        "network": settings.net,
        "epochs": f"{settings.epochs:,}, each over what the arm visits",
        "static arms": f"chosen once, by the Signals of a proxy of {settings.proxy_epochs} epochs on everything",
        "batch size": settings.batch_size,
        "learning rate": settings.lr,
        "schedule": settings.schedule,
        "accuracy": "on the test set after the last epoch",
        "seconds": "training, choosing and, for static arms, the proxy; without loading and testing",
        "seeds": seeds,
        "intervals": "95 %, Student's t over the runs",
        "device": settings.device,
        **runtime.versions(),
    }
