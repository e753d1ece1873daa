"""How a cell is done: a proxy is trained, samples are chosen or made, a network is trained on them."""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

import torch

from lcmat import runtime, seeding
from lcmat.condensation import condense
from lcmat.data import load
from lcmat.evaluation import evaluate
from lcmat.evaluation.plan import FULL
from lcmat.selection import select
from lcmat.study.cells import Cell, make_cells
from lcmat.study.design import Source, Study, locate
from lcmat.study.pipeline import Look, Machine, look_with_proxy, look_without_proxy
from lcmat.study.settings import default_net
from lcmat.study.study_folder import StudyFolder
from lcmat.types import Data, Reduced, Signals, Splits, Subset

SMALL = 256  # numbers in a sample, up to which a second thread gains nothing


class Worker:
    """Does the cells of one study, one after the other, and keeps in memory what the next one may want.

    Attributes:
        splits: the data sets by name.
        processes: that share the machine; noted with each result, as seconds depend on it.
    """

    def __init__(
        self, study: Study, folder: StudyFolder, splits: Mapping[str, Splits], machine: Machine, processes: int = 1
    ) -> None:
        self.folder, self.splits, self.machine, self.processes = folder, splits, machine, processes
        self._training = study.training
        self._seen: tuple[tuple[str, str], Look] | None = None

    def do(self, cell: Cell) -> dict[str, Any]:
        """Do a cell; the result is what its file will hold."""
        stages = {"proxy": self._train_proxy, "choose": self._choose, "train": self._train}
        small = self.splits[cell.data].train.inputs[0].numel() <= SMALL
        with runtime.one_thread() if small else nullcontext():
            result = stages[cell.stage](cell)
        return {"stage": cell.stage, **runtime.versions(), "processes": self.processes, **result}

    def _train_proxy(self, cell: Cell) -> dict[str, Any]:
        look = self._look(cell, cell.key)
        return {"seconds": dict(look.seconds), "training": dict(look.training)}

    def _choose(self, cell: Cell) -> dict[str, Any]:
        method, data = cell.method, self.splits[cell.data].train
        assert method is not None
        look = self._look(cell, cell.needs[0], method.statistics) if method.needs_proxy else look_without_proxy(data)
        start = time.perf_counter()
        sets = self._condense(cell, data) if method.condenses else self._select(cell, look.signals, data)
        seconds = time.perf_counter() - start
        self.folder.save_sets(cell, sets)
        sizes = [len(reduced) for reduced in sets.values()]
        return {"seconds": {"select": seconds}, "sizes": sizes}

    def _select(self, cell: Cell, signals: Signals | list[Signals], data: Data) -> dict[float, Subset]:
        method = cell.method
        assert method is not None
        excluded: list[int] = []
        if isinstance(signals, list) and not method.all_points:
            signals = signals[-1]
        if method.validation:
            signals, excluded = _hold_out(signals, method.validation, cell.seed)
        budget: dict[str, Any] = (
            {"fraction": list(cell.amounts)}
            if cell.budget == "fraction"
            else {"count": [int(amount) * len(data.class_names) for amount in cell.amounts], "balance": "equal"}
        )
        found = select(
            signals,
            method.name,
            **budget,
            seed=cell.seed,
            memory=self.machine.memory,
            exclude=excluded or None,
            **method.options,
        )
        return dict(zip(cell.amounts, found, strict=True))

    def _condense(self, cell: Cell, data: Data) -> dict[float, Reduced]:
        method, how = cell.method, cell.condensation
        assert method is not None
        assert how is not None
        follow = self.machine.follow(f"condensing with {method.text}, seed {cell.seed}")
        made = condense(
            data,
            method.name,
            per_class=int(cell.amounts[0]),
            steps=how.steps,
            net=how.net,
            factor=how.factor,
            seed=cell.seed,
            checkpoint=self.folder.work(cell.key),
            device=self.machine.device,
            progress=None if follow is None else lambda done, total, _: follow(done, total),
            **method.options,
        )
        return {cell.amounts[0]: made}

    def _train(self, cell: Cell) -> dict[str, Any]:
        splits, training = self.splits[cell.data], self._training
        name: str = FULL
        chosen: Reduced = everything(splits.train, cell.seed)
        if cell.method is not None:
            name, chosen = cell.method.text, self.folder.load_set(cell.method, cell.needs[0], cell.amounts[0])
        report = evaluate(
            splits,
            {name: chosen},
            nets=cell.net,
            epochs=training.epochs,
            steps=training.steps,
            batch_size=training.batch_size,
            lr=training.lr,
            schedule=training.schedule,
            optimizer=training.optimizer,
            augment=training.augment,
            seeds=[cell.seed],
            protocol=cell.protocol,
            baseline=False,
            weighted=[name] if name in training.weighted else [],
            oracle=cell.watched,
            device=self.machine.device,
        )
        [record] = report.records
        return {"seconds": record["seconds"], "record": {**record, "processes": self.processes}}

    def _look(self, cell: Cell, key: str, statistics: str = "running") -> Look:
        """What the proxy of a cell says; that of the last cell is still in memory."""
        if self._seen is None or self._seen[0] != (key, statistics):
            self._seen = None  # two would take twice the memory
            data = self.splits[cell.data].train
            assert cell.proxy is not None
            training = asdict(cell.proxy)
            training["net"] = training["net"] or default_net(data)
            look = look_with_proxy(
                data,
                **training,
                seed=cell.seed,
                record=cell.record,
                checkpoint=self.folder.work(key),
                machine=self.machine,
                statistics=statistics,
            )
            self._seen = ((key, statistics), look)
        return self._seen[1]


def read_sources(study: Study, given: Mapping[str, str]) -> dict[str, Splits]:
    """Load every data set of a study.

    Args:
        study: that names them.
        given: name -> another source to take.

    Raises:
        ValueError: for a name that the study does not have, or data that cannot be read.
    """
    names = list(dict.fromkeys(name for grid in study.grids for name in grid.data))
    if unknown := [name for name in given if name not in names]:
        raise ValueError(f"the study has no data set {', '.join(map(repr, unknown))}; it has {', '.join(names)}")
    return {name: _read(study.sources.get(name, Source(name, name)), given.get(name)) for name in names}


def read_cells(study: Study, given: Mapping[str, str]) -> tuple[dict[str, Splits], tuple[Cell, ...]]:
    """The data sets of a study, and its cells on them; as `read_sources`."""
    splits = read_sources(study, given)
    return splits, make_cells(study, {name: own.train.fingerprint for name, own in splits.items()})


def _read(source: Source, given: str | None) -> Splits:
    place = given or locate(source)
    splits = load(place, quiet=True, **source.reading)
    if source.classes:
        splits = Splits(
            first_classes(splits.train, source.classes),
            first_classes(splits.test, source.classes),
            f"{splits.name}, first {source.classes} classes",
            splits.notes,
        )
        splits = replace(splits, test=replace(splits.test, mean=splits.train.mean, std=splits.train.std))
    return replace(splits, name=source.name if source.name != place else splits.name)


def first_classes(data: Data, count: int) -> Data:
    """The rows of the first classes alone, with their own mean and standard deviation."""
    kept = data.take((data.labels < count).nonzero().flatten())
    return replace(kept, class_names=data.class_names[:count], mean=(), std=())


def everything(data: Data, seed: int) -> Subset:
    """All the data as a subset of a seed, so that training on it is a training like every other."""
    n = len(data)
    return Subset(
        indices=torch.arange(n),
        weights=torch.ones(n, dtype=torch.float64),
        gains=None,
        method=FULL,
        options={},
        seed=seed,
        n=n,
        per_class=tuple(torch.bincount(data.labels, minlength=len(data.class_names)).tolist()),
        class_names=data.class_names,
        fingerprint=data.fingerprint,
    )


def _hold_out(signals: Signals | list[Signals], share: float, seed: int) -> tuple[Signals | list[Signals], list[int]]:
    """The Signals with a random share of them as validation Signals, and the rows of these."""
    points = signals if isinstance(signals, list) else [signals]
    n = points[0].n
    rows = torch.randperm(n, generator=seeding.generator(seed, "validation"))[: max(1, round(share * n))]
    held = [replace(point, validation=replace(point.take(rows.to(point.device)), record=None)) for point in points]
    return (held if isinstance(signals, list) else held[0]), rows.tolist()
