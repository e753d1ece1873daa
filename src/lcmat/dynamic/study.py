"""Static and dynamic selection side by side: the same network, the same epochs, accuracy against seconds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from lcmat import files, runtime
from lcmat.dynamic.result import Study
from lcmat.dynamic.trainings import Trainings
from lcmat.evaluation.account import reuse_note
from lcmat.training.shared import Proxies
from lcmat.types import Splits

DEFAULT_METHODS = ("static:lcmat-s", "lcmat-s", "craig", "random", "infobatch", "full")

# (trainings done, trainings in all, what comes next)
Progress = Callable[[int, int, str], None]


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
    place = runtime.pick_device(device)
    trainings = Trainings.plan(
        data, methods=methods, fractions=fractions, every=every, pools=pools, warmup=warmup, weighted=weighted,
        options=options, net=net, epochs=epochs, proxy_epochs=proxy_epochs, seeds=seeds, batch_size=batch_size, lr=lr,
        schedule=schedule, looks=looks, device=place.type,
    )  # fmt: skip
    found, reused = _run(trainings, records, place, progress)
    return trainings.study(found, reuse_note(reused, len(found)))


def _run(
    trainings: Trainings, path: str | Path | None, device: torch.device, progress: Progress | None
) -> tuple[list[dict[str, Any]], int]:
    """The records of all trainings, and how many were there before."""
    known = {record["key"]: record for record in files.read_json_lines(path) if "key" in record} if path else {}
    tasks = [task for task in trainings.pieces() if task.arm is not None]
    found, reused, proxies = [], 0, Proxies()
    for done, task in enumerate(tasks):
        if progress:
            progress(done, len(tasks), task.words)
        key = task.decisive["key"]
        if key in known:
            reused += 1
        else:
            known[key] = trainings.do(task, proxies, device)
            if path:
                files.append_json_line(path, known[key])
        found.append(known[key])
    if progress:
        progress(len(tasks), len(tasks), "done")
    return found, reused
