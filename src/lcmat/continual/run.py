"""Memories compared: every filler over the same streams, with several seeds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lcmat import files, runtime
from lcmat.continual.fill import Filler
from lcmat.continual.result import Study
from lcmat.continual.walks import Walks
from lcmat.training.shared import Proxies
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
    place = runtime.pick_device(device)
    walks = Walks.plan(
        data, fill=fill, steps=steps, per_class=per_class, total=total, protocol=protocol, order=order, net=net,
        epochs=epochs, proxy=proxy, proxy_epochs=proxy_epochs, batch_size=batch_size, lr=lr, augment=augment,
        seeds=seeds, condense_steps=condense_steps, options=options, device=place.type,
    )  # fmt: skip
    return walks.study(_walk(walks, place, None if folder is None else Path(folder), progress))


def _walk(walks: Walks, device: torch.device, folder: Path | None, progress: Progress | None) -> list[dict[str, Any]]:
    """The records of all steps of all walks."""
    path = None if folder is None else folder / "records.jsonl"
    known = {(r["walk"], r["step"]): r for r in files.read_json_lines(path) if "walk" in r} if path else {}
    total = len(walks.fillers) * sum(len(stream.steps) for stream in walks.streams.values())
    found: list[dict[str, Any]] = []
    for seed, stream in walks.streams.items():
        proxies = Proxies()
        for filler in walks.fillers:
            walk = walks.walk(filler, seed, device, folder=folder, proxies=proxies)
            key = walks.key(filler, seed)
            own = [known[key, number] for number in range(len(stream.steps)) if (key, number) in known]
            label = f"{filler.name}, seed {seed}"
            if progress:
                progress(len(found), total, label)
            if len(own) < len(stream.steps):
                for outcome in walk.outcomes(done=len(own)):
                    own.append(walks.record(filler, seed, outcome))
                    if path is not None:
                        files.append_json_line(path, own[-1])
                    if progress:
                        progress(len(found) + len(own), total, label)
            found += own
    return found
