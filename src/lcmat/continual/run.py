"""Memories compared: every filler over the same streams, with several seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from lcmat import files, networks, runtime
from lcmat.continual.fill import Filler, make_filler
from lcmat.continual.memory import Budget
from lcmat.continual.protocol import Proxies, Settings, Walk
from lcmat.continual.result import Study, make_rows
from lcmat.continual.store import FillStore
from lcmat.continual.stream import Stream, make_stream
from lcmat.report.wording import listed
from lcmat.types import Splits

# (steps done, steps in all, what comes next)
Progress = Callable[[int, int, str], None]


def run(
    data: Splits,
    fill: Sequence[str | Filler] = ("lcmat-s", "herding", "uniform"),
    *,
    steps: int | Sequence[Sequence[int]] = 5,
    per_class: int | None = None,
    total: int | None = None,
    protocol: str = "memory",
    order: str = "shuffled",
    net: str = "convnet",
    epochs: int = 200,
    proxy: str = "",
    proxy_epochs: int = 10,
    batch_size: int = 128,
    lr: float = 0.1,
    augment: bool | str = True,
    seeds: Sequence[int] = range(3),
    condense_steps: int = 1000,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    folder: str | Path | None = None,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
) -> Study:
    """Walk through a class-incremental stream with each memory, and test on all classes so far after each step.

    Protocol 'memory' is the paper's: after each step a fresh network is trained on the memory alone. 'replay' trains
    one network on, with what arrives and samples from the memory in equal parts. Under one seed all fillers get the
    same stream and the same initial weights.

    Args:
        data: the data set.
        fill: what fills the memories: selectors, condensers, or objects of the form `Filler`.
        steps: how many, or the classes of each.
        per_class: budget of the memory for each class; 10 where no budget is given.
        total: budget of the memory as a whole, shared equally by the classes that have arrived.
        protocol: 'memory' or 'replay'.
        order: of the classes: 'shuffled' by the seed, or 'given'.
        net: the network that is judged.
        epochs: of each of its trainings.
        proxy: the network that selectors look with under 'memory'; `net` if not given.
        proxy_epochs: of its training on what arrives.
        batch_size: of all trainings.
        lr: learning rate of the judged network, falling along a cosine.
        augment: of its trainings, as `lcmat.train` takes it; condensed sets are usually judged with DSA.
        seeds: one stream for each.
        condense_steps: of each condensation.
        options: of selectors and condensers, by name, such as {'lcmat-s': {'rho': 0.1}}.
        folder: keeps records, memories and checkpoints; what is found there is not done again.
        device: to work on.
        progress: called with (steps done, steps in all, what comes next).

    Returns:
        The study, with its table and its page.

    Raises:
        ValueError: for an unknown name, or a budget, number of steps or protocol out of range, before any training.
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
    place = runtime.pick_device(device)
    home = None if folder is None else Path(folder)
    records = _walk(streams, fillers, budget, settings, place, home, progress)
    notes = list(data.notes)
    if len(seeds) == 1:
        notes.append("One run of each: there are no intervals, and differences of a single run prove nothing.")
    elif len(fillers) > 1:
        notes.append(f"{len(fillers)} memories, each with its own 95 % intervals: one in twenty misleads by chance.")
    alone = any(len(step.classes) == 1 for stream in streams.values() for step in stream.steps)
    if alone and (made := [filler.name for filler in fillers if filler.kind == "condensation"]):
        notes.append(f"A class that arrives alone is not condensed: {listed(made)} keep real samples of it at random.")
    return Study(
        rows=make_rows(records),
        records=records,
        protocol=_protocol(data, streams, budget, settings, fillers, order, place),
        notes=tuple(notes),
        name=data.name,
    )


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


def _walk(
    streams: Mapping[int, Stream],
    fillers: Sequence[Filler],
    budget: Budget,
    settings: Settings,
    device: torch.device,
    folder: Path | None,
    progress: Progress | None,
) -> list[dict[str, Any]]:
    """The records of all steps of all walks."""
    path = None if folder is None else folder / "records.jsonl"
    known = {(r["walk"], r["step"]): r for r in files.read_json_lines(path) if "walk" in r} if path else {}
    total = len(fillers) * sum(len(stream.steps) for stream in streams.values())
    found: list[dict[str, Any]] = []
    for seed, stream in streams.items():
        proxies = Proxies()
        for filler in fillers:
            walk = Walk(stream, filler, budget, settings, seed=seed, device=device, folder=folder, proxies=proxies)
            key = FillStore.digest({**walk.identity(), "device": device.type})
            own = [known[key, number] for number in range(len(stream.steps)) if (key, number) in known]
            label = f"{filler.name}, seed {seed}"
            if progress:
                progress(len(found), total, label)
            if len(own) < len(stream.steps):
                for outcome in walk.outcomes(done=len(own)):
                    record = {
                        "walk": key, "fill": filler.name, "kind": filler.kind, "seed": seed,
                        "protocol": settings.protocol, **outcome.as_dict(), "machine": runtime.machine(),
                    }  # fmt: skip
                    own.append(record)
                    if path is not None:
                        files.append_json_line(path, record)
                    if progress:
                        progress(len(found) + len(own), total, label)
            found += own
    return found


def _protocol(
    data: Splits,
    streams: Mapping[int, Stream],
    budget: Budget,
    settings: Settings,
    fillers: Sequence[Filler],
    order: str,
    device: torch.device,
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
        "device": device.type,
        **runtime.versions(),
    }
