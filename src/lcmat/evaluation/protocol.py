"""The one protocol by which subsets are judged: fresh networks, the last epoch, random sets beside them."""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lcmat import files, networks, runtime, seeding, training
from lcmat.evaluation.account import about_curves, notes_on, protocol_of, ran_on, reuse_note
from lcmat.evaluation.curve import Watch
from lcmat.evaluation.plan import Entry, make_plan
from lcmat.evaluation.result import Report
from lcmat.evaluation.rows import make_rows
from lcmat.evaluation.settings import Settings, check_budget, check_kinds, choose_protocol, make_settings
from lcmat.training.settings import soft_targets
from lcmat.types import Reduced, Splits, Subset
from lcmat.version import __version__

Progress = Callable[[int, int, str], None]

# What a training gives, in its record; records of earlier versions lack some, and most lack the last.
_MEASURED = ("accuracy", "right_per_class", "seconds", "python", "torch", "machine", "curve")


def evaluate(
    data: Splits,
    subsets: Mapping[str, Reduced | Sequence[Reduced]],
    *,
    nets: str | Sequence[str] = ("resnet18",),
    epochs: int | None = None,
    steps: int | None = None,
    seeds: Sequence[int] = range(6),
    protocol: str = "auto",
    batch_size: int | None = None,
    lr: float | None = None,
    schedule: str | None = None,
    optimizer: str = "sgd",
    baseline: bool = True,
    full: bool = False,
    weighted: Collection[str] = (),
    records: str | Path | None = None,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
    oracle: bool = False,
    reach: float | None = None,
    augment: bool | str | None = None,
    targets: Tensor | None = None,
    budget: str = "epochs",
) -> Report:
    """Train fresh networks on every subset and on random sets of the same size, and compare their test accuracies.

    Subsets under a name are grouped by their size. Where a name has several of one size, training seed i uses the one
    whose own seed is i, so that runs are independent; a single one serves all seeds. Under one seed and network,
    initialisation and order of the samples are the same for all names, so that differences are paired.

    Args:
        data: what the subsets were selected from, and the test set.
        subsets: name -> subset or synthetic set, or several of different seeds or sizes.
        nets: the networks to train, such as 'resnet18' or 'convnet:width=32'.
        epochs: passes over each subset; 200 when neither epochs nor steps are given, 1,000 for condensed sets.
        steps: optimiser steps instead, the same number for every size.
        seeds: one run for each.
        protocol: 'selection', 'condensation', or 'auto': that of condensation for all sets where a synthetic one is
            among them. What is given beside it takes the place of its own settings.
        batch_size: of the training; 128, or 64 for condensed sets.
        lr: the (highest) learning rate; 0.1, or 0.01.
        schedule: of the learning rate; 'cosine', or 'drops'.
        optimizer: 'sgd' or 'adam'.
        baseline: whether random sets of the same size and class counts are drawn beside the subsets, a new one for
            each seed; where `subsets` has a 'uniform' of a size, that one is used.
        full: whether to train on everything as well.
        weighted: names whose weights are used in the loss.
        records: a JSON Lines file that gets a line after each training; trainings found in it are not repeated.
        device: to train on; a GPU where there is one.
        progress: called with (trainings done, trainings in all, what comes next).
        oracle: whether to test after each epoch as well, and to show the best epoch on the test set in a column named
            oracle, which is no result. The tests do not change the trainings, and their time does not count.
        reach: an accuracy, from 0 to 1; the report says after how many seconds of training it was first there. This
            tests after each epoch too.
        augment: as for `train`, in place of the protocol's own; False trains without augmentation and without CutMix.
        targets: soft labels, such as a teacher's probabilities: distributions over the classes for every training
            sample of the data, `[n, C]`. All subsets, random ones and 'full' too, are trained on those of their
            samples instead of on the labels; a synthetic set has its own.
        budget: what is held equal over the sizes: 'epochs', as LCMat's paper has it, or 'steps', as pruning papers do:
            every set gets as many steps as the epochs of all the data take. `steps` says how many instead.

    Returns:
        The report.

    Raises:
        ValueError: for a subset of other data, no subsets, repeated seeds or networks, an unknown network or budget,
            or both epochs and steps.
        TypeError: for a value that is no subset or synthetic set, or a network that is no name.
    """
    check_kinds(data, subsets, nets, seeds)
    nets = _distinct("networks", [nets] if isinstance(nets, str) else nets)
    seeds = _distinct("seeds", seeds)
    weighted = [weighted] if isinstance(weighted, str) else list(weighted)
    check_budget(budget, epochs, steps)
    if records is not None and Path(records).is_dir():
        raise ValueError(f"expected a file for the records, but {records} is a folder; name a file such as x.jsonl")
    if reach is not None and not 0 < reach <= 1:
        raise ValueError(f"expected reach as an accuracy above 0 and at most 1, got {reach}")
    place = runtime.pick_device(device)
    settings = make_settings(
        choose_protocol(protocol, subsets),
        place,
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        lr=lr,
        schedule=schedule,
        optimizer=optimizer,
        augment=augment,
        cutmix=0.0 if augment is False else None,
    )
    if budget == "steps":
        settings = settings.in_steps(len(data.train))
    soft = soft_targets(targets, data.train)
    for net in nets:  # a wrong name must not come to light after hours of training the others
        networks.build(net, data.train)
    entries = make_plan(data, subsets, seeds=seeds, baseline=baseline, full=full, weighted=weighted)
    entries = tuple(replace(entry, targets=soft) for entry in entries)
    watched = oracle or reach is not None
    found, reused = _run(data, entries, nets, seeds, settings, records, device, progress, watched=watched)
    return Report(
        rows=make_rows(entries, nets, found, oracle=oracle, reach=reach),
        records=found,
        protocol={
            **protocol_of(data, nets, seeds, settings, weighted, entries),
            **ran_on(found),
            **about_curves(watched, reach),
        },
        notes=(*notes_on(data, entries, len(seeds), len(nets)), *reused),
        data=data,
        entries=entries,
    )


def gather(
    data: Splits,
    subsets: Mapping[str, Reduced | Sequence[Reduced]],
    records: Sequence[Mapping[str, Any]],
    *,
    nets: Sequence[str],
    seeds: Sequence[int],
    weighted: Collection[str] = (),
    partial: bool = False,
    oracle: bool = False,
    reach: float | None = None,
) -> Report:
    """The report of trainings that were done before, one by one; nothing is trained.

    Args:
        data: that was trained and tested on.
        subsets: name -> subsets, as for `evaluate`; 'uniform' serves as the baseline where it is among them.
        records: of `evaluate`, one for each network, seed, name and size.
        nets: the networks, in the order of the report.
        seeds: one run for each.
        weighted: names whose weights were used.
        partial: whether trainings, and subsets of some seeds, may be missing; n says how many there are.
        oracle: as for `evaluate`; the records must hold the tests after each epoch.
        reach: likewise.

    Raises:
        ValueError: when a training is missing, or all of them are.
    """
    entries = make_plan(data, subsets, seeds=seeds, baseline=False, full=False, weighted=weighted, partial=partial)
    known = {(record["net"], record["seed"], record["name"], record["size"]): dict(record) for record in records}
    wanted = [(net, seed, entry.name, entry.size) for net in nets for seed in seeds for entry in entries]
    missing = [cell for cell in wanted if cell not in known]
    if missing and not (partial and known):
        raise ValueError(f"expected records of {len(wanted)} trainings, {len(missing)} are missing: {missing[0]} first")
    found = [known[cell] for cell in wanted if cell in known]
    return Report(
        rows=make_rows(entries, nets, found, oracle=oracle, reach=reach),
        records=found,
        protocol={
            **protocol_of(data, nets, seeds, Settings(**found[0]["settings"]), list(weighted), entries),
            **ran_on(found),
            **about_curves(oracle or reach is not None, reach),
        },
        notes=tuple(notes_on(data, entries, len(seeds), len(nets))),
        data=data,
        entries=entries,
    )


def _run(
    data: Splits,
    entries: Sequence[Entry],
    nets: Sequence[str],
    seeds: Sequence[int],
    settings: Settings,
    path: str | Path | None,
    device: torch.device | str | None,
    progress: Progress | None,
    *,
    watched: bool,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of all trainings, and a note on those that were there already."""
    known = [record for record in files.read_json_lines(path) if isinstance(record, dict)] if path else []
    finished = {record["key"]: record for record in known if "key" in record}
    cells = [(net, seed, entry) for net in nets for seed in seeds for entry in entries]
    found, reused = [], 0
    for done, (net, seed, entry) in enumerate(cells):
        if progress:
            progress(done, len(cells), f"{entry.label}, {net}, seed {seed}")
        cell = _describe_cell(data, entry, net, seed, settings)
        if cell["key"] in finished and ("curve" in finished[cell["key"]] or not watched):
            measured = finished[cell["key"]]
            reused += 1
        else:
            measured = _train_cell(data, entry, net, seed, settings, device, watched=watched)
            finished[cell["key"]] = measured
            if path:
                files.append_json_line(path, {**cell, **measured})
        found.append({**cell, **{name: measured[name] for name in _MEASURED if name in measured}})
    if progress:
        progress(len(cells), len(cells), "done")
    return found, reuse_note(reused, len(cells))


def _describe_cell(data: Splits, entry: Entry, net: str, seed: int, settings: Settings) -> dict[str, Any]:
    """All that decides what a training gives; its digest tells whether it has been done already."""
    subset = entry.by_seed[seed]
    parts = [] if subset is None else _content(subset, weighted=entry.weighted)
    decisive = {
        "data": data.train.fingerprint,
        "test": data.test.fingerprint,
        "subset": files.fingerprint(*parts) if parts else "",
        "weighted": entry.weighted,
        "net": net,
        "seed": seed,
        "settings": asdict(settings),
        "lcmat": __version__,
    }
    if entry.targets is not None:
        decisive["targets"] = files.fingerprint(entry.targets)
    key = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
    selection = {} if subset is None else {"method": subset.method, "selection_seed": subset.seed}
    return {"key": key, "name": entry.name, "size": entry.size, "fraction": entry.fraction, **selection, **decisive}


def _content(chosen: Reduced, *, weighted: bool) -> list[torch.Tensor]:
    """The tensors that decide what is trained on."""
    if isinstance(chosen, Subset):
        return [chosen.indices, *([chosen.weights] if weighted else [])]
    data = chosen.data()
    return [data.inputs, data.labels, *([] if chosen.soft is None else [chosen.soft])]


def _train_cell(
    data: Splits,
    entry: Entry,
    net: str,
    seed: int,
    settings: Settings,
    device: torch.device | str | None,
    *,
    watched: bool,
) -> dict[str, Any]:
    """Train a fresh network; nothing but the seed and the network decides its initialisation and its stream."""
    subset = entry.by_seed[seed]
    chosen = data.train if subset is None else subset.apply(data.train)
    watch = Watch(data.test, device) if watched else None
    start = time.perf_counter()
    model = training.train(
        networks.build(net, data.train, seed=seeding.derive(seed, "evaluation", "initialisation", net)),
        chosen,
        epochs=settings.epochs,
        steps=settings.steps,
        batch_size=settings.batch_size,
        lr=settings.lr,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
        schedule=settings.schedule,
        optimizer=settings.optimizer,
        weights=subset.weights if entry.weighted and isinstance(subset, Subset) else None,
        targets=entry.targets_of(seed),
        seed=seeding.derive(seed, "evaluation", "training", net),
        augment=settings.augment,
        cutmix=settings.cutmix,
        device=device,
        precision=settings.precision,
        after_epoch=watch,
    )
    trained = time.perf_counter()
    right = training.predict(model, data.test, device=device).argmax(1) == data.test.labels
    tested = watch.spent if watch else 0.0
    seconds = {"train": trained - start - tested, "test": time.perf_counter() - trained}
    per_class = torch.bincount(data.test.labels[right], minlength=len(data.test.class_names)).tolist()
    measured = {"accuracy": float(right.double().mean()), "right_per_class": per_class, "seconds": seconds}
    return {**measured, **runtime.versions(), **({"curve": watch.points} if watch else {})}


def _distinct(what: str, values: Sequence[Any]) -> list[Any]:
    found = list(values)
    if not found or len(set(found)) != len(found):
        raise ValueError(f"expected distinct {what}, at least one, got {found}")
    return found
