"""All trainings of a comparison of static and dynamic selection, as pieces of work in a useful order."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcmat import networks, runtime, seeding
from lcmat import training as plain
from lcmat.dynamic.arms import Arm, make_arms
from lcmat.dynamic.reselection import Asked
from lcmat.dynamic.result import Study, make_rows
from lcmat.dynamic.training import Trained, train
from lcmat.evaluation.account import ran_on
from lcmat.evaluation.findings import missing_note, most_processes, sharing_note
from lcmat.networks.build import parse as parse_net
from lcmat.pieces import Piece
from lcmat.selection import select
from lcmat.signals import extract
from lcmat.training.settings import check_loop
from lcmat.training.shared import Proxies
from lcmat.types import Data, Splits
from lcmat.version import __version__


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
        counts = {"epoch": self.epochs, "proxy epoch": self.proxy_epochs, "look": self.looks}
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"expected at least 1 {name}, got {count}")
        check_loop(epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, schedule=self.schedule)
        if self.net:
            parse_net(self.net)


@dataclass(frozen=True)
class Task(Piece):
    """The training of an arm or, where there is none, of the proxy that static arms are chosen by.

    Attributes:
        arm: what is trained.
        seed: of the run.
        record: whether a proxy's training keeps a record of every sample.
    """

    arm: Arm | None = None
    seed: int = 0
    record: bool = False


@dataclass(frozen=True, eq=False)
class Trainings:
    """What is trained, and how.

    Attributes:
        data: to train and test on.
        arms: ways of choosing.
        seeds: one run of each arm for each.
        settings: that all of them have in common.
    """

    data: Splits
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    settings: Settings

    @classmethod
    def plan(
        cls,
        data: Splits,
        *,
        methods: Sequence[str],
        fractions: Sequence[float],
        every: Sequence[int],
        pools: Sequence[float | None],
        warmup: int = 0,
        weighted: Sequence[str] = (),
        options: Mapping[str, Mapping[str, Any]] | None = None,
        net: str,
        epochs: int,
        proxy_epochs: int,
        seeds: Sequence[int],
        batch_size: int = 128,
        lr: float = 0.1,
        schedule: str = "cosine",
        looks: int = 10,
        device: str = "cpu",
    ) -> "Trainings":
        """As `lcmat.dynamic.compare` takes it; the device is a kind, such as 'cuda', and need not be at hand.

        Raises:
            ValueError: for an unknown method or network, or a value out of range.
        """
        seeds = tuple(seeds)
        if not seeds or len(set(seeds)) != len(seeds):
            raise ValueError(f"expected distinct seeds, at least one, got {list(seeds)}")
        settings = Settings(net, epochs, proxy_epochs, batch_size, lr, schedule, min(looks, epochs), device)
        networks.build(net, data.train)
        arms = make_arms(
            methods, fractions, every, pools, n=len(data.train), epochs=epochs, warmup=warmup, weighted=weighted,
            options=options,
        )  # fmt: skip
        return cls(data, tuple(arms), seeds, settings)

    def pieces(self) -> tuple[Task, ...]:
        """Seed after seed, so that what is done early is one run of everything; in each the small fractions first."""
        found: dict[str, Task] = {}
        for seed in self.seeds:
            tasks = [self._training(arm, seed) for arm in sorted(self.arms, key=lambda arm: arm.fraction or 1.0)]
            proxies = [self._proxy(task.arm, seed) for task in tasks if task.arm and task.arm.static]
            found |= {task.key: task for task in (*proxies, *tasks)}
        return tuple(found.values())

    def do(self, task: Task, proxies: Proxies, device: torch.device) -> dict[str, Any]:
        """Carry out a task; the record of a training, or the seconds of a proxy."""
        if task.arm is None:
            start = time.perf_counter()
            _, saved = self._look(task, proxies, device)
            return {"seconds": time.perf_counter() - start + saved}
        trained = _train(self, task.arm, task.seed, proxies, device)
        return {**_describe(self.data, task.arm, task.seed, self.settings), **trained}

    def study(self, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> Study:
        """What the records say, or those of them that are there yet."""
        known = {record["key"]: record for record in records}
        wanted = [
            (arm, _describe(self.data, arm, seed, self.settings)["key"]) for seed in self.seeds for arm in self.arms
        ]
        found = [{**known[key], "name": arm.name} for arm, key in wanted if key in known]
        rows = make_rows(self.arms, found)
        there = {(row.name, row.fraction) for row in rows}
        missing = [arm.label for arm in self.arms if (arm.name, arm.fraction) not in there]
        said = [*self.data.notes, *missing_note(len(found), len(self.arms) * len(self.seeds), missing)]
        said += [*sharing_note(most_processes(found)), *notes]
        if len(self.seeds) == 1:
            said.append("One run of each: there are no intervals, and differences of a single run prove nothing.")
        elif (compared := sum(arm.fraction is not None for arm in self.arms)) > 1:
            said.append(f"{compared} arms, each with its own 95 % intervals: one in twenty misleads by chance.")
        protocol = {**_protocol(self.data, self.arms, self.seeds, self.settings), **(ran_on(found) if found else {})}
        return Study(rows=rows, records=found, protocol=protocol, notes=tuple(said), name=self.data.name)

    def _training(self, arm: Arm, seed: int) -> Task:
        decisive = _describe(self.data, arm, seed, self.settings)
        needs = (self._proxy(arm, seed).key,) if arm.static else ()
        return Task("train", f"{arm.label} seed {seed}", decisive, arm.fraction or 1.0, needs, arm, seed)

    def _proxy(self, arm: Arm, seed: int) -> Task:
        record = "record" in Asked(arm.method, arm.choose).needs
        decisive = {
            "data": self.data.train.fingerprint,
            "net": self.settings.net,
            "epochs": self.settings.proxy_epochs,
            "record": record,
            "seed": seed,
            "device": self.settings.device,
        }
        name = f"{self.settings.net} seed {seed}" + (" with a record" if record else "")
        return Task("proxy", name, decisive, self.settings.proxy_epochs, (), None, seed, record)

    def _look(self, task: Task, proxies: Proxies, device: torch.device) -> tuple[nn.Module, float]:
        """A proxy, and the seconds of its training that another task took."""

        def make(checkpoint: Path | None) -> nn.Module:
            return plain.train(
                self.settings.net, self.data.train, epochs=self.settings.proxy_epochs, seed=task.seed,
                record=task.record, checkpoint=checkpoint, device=device,
            )  # fmt: skip

        return proxies.get(task.key, make)

    def choose_once(self, arm: Arm, seed: int, proxies: Proxies, device: torch.device) -> tuple[Data, dict[str, float]]:
        """What a proxy's Signals make the selector keep, and the seconds that it takes by itself."""
        data, start = self.data.train, time.perf_counter()
        proxy, saved = self._look(self._proxy(arm, seed), proxies, device)
        signals = extract(proxy, data, device=device)
        looked = time.perf_counter()
        subset = select(signals, arm.method, fraction=arm.fraction, seed=seed, **dict(arm.choose))
        chosen = subset.apply(data)
        return chosen, {"proxy": looked - start + saved, "choice": time.perf_counter() - looked}


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


def _train(trainings: Trainings, arm: Arm, seed: int, proxies: Proxies, device: torch.device) -> dict[str, Any]:
    """One training; its curve has (epochs, seconds, accuracy) at some epochs, the last one included."""
    data, settings = trainings.data, trainings.settings
    before: dict[str, float] = {}
    chosen, method, fraction, choose = data.train, arm.method, arm.fraction, dict(arm.choose)
    if arm.static:
        chosen, before = trainings.choose_once(arm, seed, proxies, device)
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
        **runtime.versions(),
    }


def _seconds(trained: Trained) -> dict[str, float]:
    cost = trained.cost
    return {"signals": cost.signals, "select": cost.select, "train": trained.seconds - cost.spent}


def _protocol(data: Splits, arms: Sequence[Arm], seeds: Sequence[int], settings: Settings) -> dict[str, Any]:
    return {
        "data": data.name,
        "data fingerprint": data.train.fingerprint,
        "train samples": len(data.train),
        "test samples": len(data.test),
        "network": settings.net,
        "epochs": f"{settings.epochs:,}, each over what the arm visits",
        "static arms": f"chosen once, by the Signals of a proxy of {settings.proxy_epochs} epochs on everything",
        **_choosing(arms),
        "batch size": settings.batch_size,
        "learning rate": settings.lr,
        "schedule": settings.schedule,
        "accuracy": "on the test set after the last epoch",
        "seconds": "training, choosing and, for static arms, the proxy; without loading and testing",
        "seeds": list(seeds),
        "intervals": "95 %, Student's t over the runs",
        "device": settings.device,
    }


def _choosing(arms: Sequence[Arm]) -> dict[str, Any]:
    """How the arms choose, as far as their names do not say."""
    anew = [arm for arm in arms if "every" in arm.choose]
    weighted = dict.fromkeys(arm.method for arm in anew if arm.choose["weighted"])
    warm = {arm.choose["warmup"] for arm in anew} - {0}
    own = {
        f"{arm.method}.{name}={value}": None
        for arm in arms
        for name, value in arm.choose.items()
        if name not in {"every", "warmup", "pool", "weighted", "replacement"}
    }
    return {
        "weights in the loss": f"those of {', '.join(weighted)}" if weighted else None,
        **({"epochs of warm-up": f"{max(warm)}, on everything, in arms that choose anew"} if warm else {}),
        **({"options": list(own)} if own else {}),
    }
