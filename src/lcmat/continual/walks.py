"""All walks of a comparison of memories, as pieces of work in a useful order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from lcmat import networks, runtime
from lcmat.continual.fill import Filler, make_filler
from lcmat.continual.memory import Budget
from lcmat.continual.protocol import Outcome, Walk
from lcmat.continual.result import Study, make_rows
from lcmat.continual.settings import Settings
from lcmat.continual.store import FillStore
from lcmat.continual.stream import Stream, make_stream
from lcmat.evaluation.account import ran_on
from lcmat.evaluation.findings import missing_note, most_processes, sharing_note
from lcmat.pieces import Piece
from lcmat.report.wording import listed
from lcmat.types import Splits


@dataclass(frozen=True)
class Task(Piece):
    """One step of a walk, or a part of it.

    Attributes:
        filler: what fills the memory; of a proxy, one of those that look with it.
        seed: of the walk.
        step: its number.
    """

    filler: Filler | None = None
    seed: int = 0
    step: int = 0


@dataclass(frozen=True, eq=False)
class Walks:
    """What is compared, and how.

    Attributes:
        data: the data set.
        streams: its steps, by seed.
        fillers: ways of filling the memory.
        budget: of the memory.
        settings: of all trainings.
        order: of the classes.
        device: the kind of device that all is done on.
    """

    data: Splits
    streams: Mapping[int, Stream]
    fillers: tuple[Filler, ...]
    budget: Budget
    settings: Settings
    order: str
    device: str

    @classmethod
    def plan(
        cls,
        data: Splits,
        *,
        fill: Sequence[str | Filler],
        steps: int | Sequence[Sequence[int]],
        per_class: int | None = None,
        total: int | None = None,
        protocol: str = "memory",
        order: str = "shuffled",
        net: str,
        epochs: int,
        proxy: str = "",
        proxy_epochs: int,
        batch_size: int = 128,
        lr: float = 0.1,
        augment: bool | str = True,
        seeds: Sequence[int],
        condense_steps: int = 1000,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        device: str = "cpu",
    ) -> "Walks":
        """As `lcmat.continual.run` takes it; the device is a kind, such as 'cuda', and need not be at hand.

        Raises:
            ValueError: for an unknown name, or a budget, number of steps or protocol out of range.
        """
        budget = Budget(per_class=10 if per_class is None and total is None else per_class, total=total)
        settings = Settings(protocol, net, epochs, proxy, proxy_epochs, batch_size, lr, augment)
        fillers = _make_fillers(fill, condense_steps, options or {})
        seeds = list(seeds)
        if not seeds or len(set(seeds)) != len(seeds):
            raise ValueError(f"expected distinct seeds, at least one, got {seeds}")
        streams = {seed: make_stream(data, steps, order=order, seed=seed) for seed in seeds}
        classes = len(streams[seeds[0]].seen(len(streams[seeds[0]].steps) - 1))
        budget.share(dict.fromkeys(range(classes), 1))
        for name in {settings.net, settings.proxy}:
            networks.build(name, data.train)
        return cls(data, streams, tuple(fillers), budget, settings, order, device)

    def walk(self, filler: Filler, seed: int, device: torch.device, **more: Any) -> Walk:
        """One walk."""
        return Walk(self.streams[seed], filler, self.budget, self.settings, seed=seed, device=device, **more)

    def key(self, filler: Filler, seed: int) -> str:
        """What stands for a walk in the records."""
        identity = self.walk(filler, seed, torch.device("cpu")).identity()
        return FillStore.digest({**identity, "test": self.data.test.fingerprint, "device": self.device})

    def pieces(self) -> tuple[Task, ...]:
        """Seed after seed, so that what is done early is one walk of each memory.

        Where steps stand alone, proxies and fillings come first, each once, and then the trainings, by memory.
        """
        found: dict[str, Task] = {}
        for seed in self.seeds:
            tasks = [task for filler in self.by_effort() for task in self._tasks(filler, seed)]
            proxies = [task for task in tasks if task.stage == "proxy"]
            found |= {task.key: task for task in (*proxies, *tasks)}
        return tuple(found.values())

    @property
    def seeds(self) -> tuple[int, ...]:
        """In the order of the walks."""
        return tuple(self.streams)

    def by_effort(self) -> list[Filler]:
        """The fillers, those that choose before those that condense."""
        return sorted(self.fillers, key=lambda filler: filler.kind == "condensation")

    def _tasks(self, filler: Filler, seed: int) -> Iterator[Task]:
        walk = self.walk(filler, seed, torch.device("cpu"))
        own, name = self.key(filler, seed), f"{filler.name} seed {seed} step"
        steps = range(len(self.streams[seed].steps))
        if not walk.stands_alone:
            before: tuple[str, ...] = ()
            for step in steps:
                task = Task("walk", f"{name} {step + 1}", {"walk": own, "step": step}, 1.0, before, filler, seed, step)
                before = (task.key,)
                yield task
            return
        filled = []
        for step in steps:
            needs: tuple[str, ...] = ()
            if filler.looks:
                proxy = self._proxy(filler, seed, step)
                yield proxy
                needs = (proxy.key,)
            stage, decisive = "condense" if filler.kind == "condensation" else "fill", {"walk": own, "step": step}
            task = Task(stage, f"{name} {step + 1}", decisive, 1.0, needs, filler, seed, step)
            filled.append(task.key)
            yield task
        for step in steps:
            needs = tuple(filled[: step + 1])
            decisive = {"walk": own, "step": step, "judged": True}
            yield Task("train", f"{name} {step + 1}", decisive, step + 1.0, needs, filler, seed, step)

    def _proxy(self, filler: Filler, seed: int, step: int) -> Task:
        """The same for all fillers that look with it."""
        decisive = {
            "data": self.data.train.fingerprint,
            "classes": list(self.streams[seed].steps[step].classes),
            "settings": asdict(self.settings),
            "record": filler.needs_record,
            "seed": seed,
            "step": step,
            "device": self.device,
        }
        name = f"seed {seed} step {step + 1}" + (" with a record" if filler.needs_record else "")
        return Task("proxy", name, decisive, 1.0, (), filler, seed, step)

    def do(self, task: Task, walk: Walk) -> dict[str, Any]:
        """Carry out a task of a walk; the record of a training, or the seconds of what comes before."""
        assert task.filler is not None
        if task.stage == "proxy":
            return {"seconds": walk.look(task.step)}
        if task.stage in {"fill", "condense"}:
            return {"seconds": walk.fill(task.step)}
        return self.record(task.filler, task.seed, walk.judge(task.step))

    def record(self, filler: Filler, seed: int, outcome: Outcome) -> dict[str, Any]:
        """One step of a walk, as it is kept."""
        return {
            "walk": self.key(filler, seed), "fill": filler.name, "kind": filler.kind, "seed": seed,
            "protocol": self.settings.protocol, **outcome.as_dict(), **runtime.versions(),
        }  # fmt: skip

    def study(self, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> Study:
        """What the records say; a walk counts when all its steps are there."""
        known = {(record["walk"], record["step"]): dict(record) for record in records}
        found: list[dict[str, Any]] = []
        there: dict[str, int] = {filler.name: 0 for filler in self.fillers}
        for seed in self.seeds:
            steps = range(len(self.streams[seed].steps))
            for filler in self.fillers:
                key = self.key(filler, seed)
                if all((key, step) in known for step in steps):
                    found += [known[key, step] for step in steps]
                    there[filler.name] += 1
        missing = [name for name, number in there.items() if not number]
        said = [*self.data.notes, *missing_note(sum(there.values()), len(self.fillers) * len(self.seeds), missing)]
        protocol = {
            **_protocol(self.data, self.streams, self.budget, self.settings, self.fillers, self.order, self.device),
            **(ran_on(found) if found else {}),
        }
        said += [*sharing_note(most_processes(found)), *self._notes(), *notes]
        rows = make_rows([filler.name for filler in self.fillers], found)
        return Study(rows=rows, records=found, protocol=protocol, notes=tuple(said), name=self.data.name)

    def _notes(self) -> Iterator[str]:
        if len(self.seeds) == 1:
            yield "One run of each: there are no intervals, and differences of a single run prove nothing."
        elif len(self.fillers) > 1:
            yield f"{len(self.fillers)} memories, each with its own 95 % intervals: one in twenty misleads by chance."
        alone = any(len(step.classes) == 1 for stream in self.streams.values() for step in stream.steps)
        if alone and (made := [filler.name for filler in self.fillers if filler.kind == "condensation"]):
            yield f"A class that arrives alone is not condensed: {listed(made)} keep real samples of it at random."


def _make_fillers(
    fill: Sequence[str | Filler], condense_steps: int, options: Mapping[str, Mapping[str, Any]]
) -> list[Filler]:
    if isinstance(fill, str):
        fill = [fill]
    fillers = [
        make_filler(part, condense_steps=condense_steps, options=options.get(part)) if isinstance(part, str) else part
        for part in fill
    ]
    names = [filler.name for filler in fillers]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"expected distinct ways of filling, at least one, got {names}")
    if unused := sorted(set(options) - set(names)):
        raise ValueError(f"options are given for {', '.join(unused)}, which fill nothing here")
    return fillers


def _protocol(
    data: Splits,
    streams: Mapping[int, Stream],
    budget: Budget,
    settings: Settings,
    fillers: Sequence[Filler],
    order: str,
    device: str,
) -> dict[str, Any]:
    first = next(iter(streams.values()))
    trained = {
        "memory": "a fresh network after each step, on the memory alone",
        "replay": "one network on and on, with what arrives and samples from the memory in equal parts",
    }[settings.protocol]
    looked = {
        "memory": f"{settings.proxy}, {settings.proxy_epochs} epochs on what arrives in the step",
        "replay": "the network itself, after its training in the step",
    }[settings.protocol]
    given = {name: value for name, value in asdict(budget).items() if value is not None}
    return {
        "data": data.name,
        "data fingerprint": data.train.fingerprint,
        "train samples": len(data.train),
        "test samples": len(data.test),
        "steps": len(first.steps),
        "classes in each": [len(step.classes) for step in first.steps],
        "order of the classes": order,
        "memory": ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in given.items()),
        "filled by": [filler.name for filler in fillers],
        **_condensation(fillers),
        "trained": trained,
        "selectors look with": looked,
        "network": settings.net,
        "epochs": settings.epochs,
        "batch size": settings.batch_size,
        "learning rate": f"{settings.lr:g}, falling along a cosine",
        "augmentation": "crop and flip, as the data allows" if settings.augment is True else settings.augment,
        "accuracy": "on the test samples of all classes so far, among these classes",
        "normalisation": "by the mean and standard deviation of all training data",
        "seeds": list(streams),
        "intervals": "95 %, Student's t over the seeds",
        "device": device,
    }


def _condensation(fillers: Sequence[Filler]) -> dict[str, Any]:
    """How long condensers work, and what is asked of all fillers in particular."""
    described = {filler.name: filler.describe() for filler in fillers}
    found = {}
    if steps := sorted({facts["steps"] for facts in described.values() if "steps" in facts}):
        found["steps of condensation"] = ", ".join(f"{number:,}" for number in steps)
    options = {
        name: ", ".join(f"{option}={value}" for option, value in facts["options"].items())
        for name, facts in described.items()
        if facts.get("options")
    }
    if options:
        found["options"] = "; ".join(f"{name} {text}" for name, text in options.items())
    return found
