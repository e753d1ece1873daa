"""What a finished study says: its trainings as reports, its times, and the paper's values beside both."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from lcmat import files
from lcmat.evaluation import Report, Row, gather
from lcmat.evaluation.account import ran_on
from lcmat.evaluation.findings import most_processes, sharing_note
from lcmat.evaluation.payoff import payoff_table
from lcmat.evaluation.plan import FULL, Entry, make_plan
from lcmat.report import Table
from lcmat.report.plain import as_csv
from lcmat.report.wording import in_words
from lcmat.study.cells import Cell, choices, trainings
from lcmat.study.design import Grid, Proxy, Study
from lcmat.study.paper import Beside, PaperValue, compare_rows, compare_times, read_paper
from lcmat.study.study_folder import StudyFolder
from lcmat.study.worker import everything
from lcmat.types import Reduced, Splits


@dataclass(frozen=True, eq=False)
class Group:
    """One block of a study on one data set with one proxy.

    Attributes:
        data: name of the data set.
        proxy: what tells the proxy from the others, or empty.
        entries: what was chosen or made.
        amounts: size -> the amount that it came from.
        report: of the trainings; None where there are none.
        choosing: name -> seconds of proxy, extraction and selection, mean over the seeds.
    """

    data: str
    proxy: str
    entries: tuple[Entry, ...]
    amounts: Mapping[int, float]
    report: Report | None
    choosing: Mapping[str, float]

    @property
    def label(self) -> str:
        """In words."""
        return f"{self.data}, {self.proxy}" if self.proxy else self.data

    @property
    def payoff(self) -> Table | None:
        """From how many trainings on it a choice pays, where there is one that does."""
        return payoff_table(self.report.rows, self.choosing) if self.report else None


@dataclass(frozen=True)
class Time:
    """How long one choice took, on its own; means over the seeds.

    Attributes:
        data: name of the data set.
        method: as the study calls it.
        amount: that was kept.
        n: seeds.
        proxy: seconds of the proxy's training; 0 where none was needed.
        extract: seconds of reading it out.
        select: seconds of the choice.
        lowest: seconds in all, of the fastest seed.
        highest: of the slowest one.
    """

    data: str
    method: str
    amount: float
    n: int
    proxy: float
    extract: float
    select: float
    lowest: float
    highest: float

    @property
    def total(self) -> float:
        """Seconds in all."""
        return self.proxy + self.extract + self.select


@dataclass(frozen=True, eq=False)
class Outcome:
    """All results of a study, or what there is of them.

    Attributes:
        study: what was asked for.
        splits: the data sets by name.
        groups: blocks of results.
        times: of the choices, where they are results.
        beside: our values and the paper's.
        records: of all trainings.
        done: cells that are finished.
        total: cells in all.
        processes: most that shared the machine while a cell was done.
        ran_on: versions and machines that samples were chosen or made on.
    """

    study: Study
    splits: Mapping[str, Splits]
    groups: tuple[Group, ...]
    times: tuple[Time, ...]
    beside: tuple[Beside, ...]
    records: tuple[Mapping[str, Any], ...]
    done: int
    total: int
    processes: int = 1
    ran_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def proxies(self) -> dict[str, str]:
        """How the proxies that a method looked with were trained, in words; of several, all values of each setting."""
        looking = [grid for grid in self.study.grids if any(method.needs_proxy for method in grid.methods)]
        used = [asdict(proxy) for grid in looking for proxy in grid.proxies]
        found = {}
        for name in used[0] if used else ():
            values = dict.fromkeys(in_words(proxy[name]) for proxy in used if proxy[name] not in {"", ()})
            if values:
                found[f"proxy's {name.replace('_', ' ')}"] = "; ".join(values)
        return found

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be known of the whole: that it is not finished, or that processes shared the machine."""
        found = []
        if self.done < self.total:
            found.append(f"Not finished: {self.done:,} of {self.total:,} cells are done; n says how many runs count.")
        return (*found, *sharing_note(self.processes))

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks, and what must be known to read the numbers of each block rightly."""
        notes = [note for group in self.groups if group.report for note in group.report.notes]
        return tuple(dict.fromkeys([*self.remarks, *notes]))

    def as_dict(self) -> dict[str, Any]:
        """Rows, times and the paper's values as JSON has them."""
        return {
            "study": self.study.name,
            "title": self.study.title,
            "rows": list(_row_dicts(self.groups)),
            "times": [asdict(time) for time in self.times],
            "paper": [asdict(line) for line in self.beside],
            "proxies": self.proxies,
            "ran_on": dict(self.ran_on),
            "protocols": {group.label: group.report.protocol for group in self.groups if group.report},
            "notes": sorted(self.notes),
            "cells": {"done": self.done, "total": self.total},
        }

    def save(self, folder: Path) -> None:
        """Write records.jsonl, results.json and results.csv."""
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)
        files.write_text(folder / "records.jsonl", lines)
        files.write_json(folder / "results.json", self.as_dict())
        files.write_text(folder / "results.csv", as_csv(list(_row_dicts(self.groups))))


def collect(study: Study, folder: StudyFolder, splits: Mapping[str, Splits], cells: Sequence[Cell]) -> Outcome:
    """Read the results of all cells that are finished."""
    results = {cell.key: folder.result(cell.key) for cell in cells if folder.done(cell.key)}
    known = {cell.key: cell for cell in cells}
    records = [
        {**results[cell.key]["record"], **_origin(cell, known)}
        for cell in cells
        if cell.stage == "train" and cell.key in results
    ]
    groups = tuple(
        _group(study, folder, splits[data], grid, data, proxy)
        for grid in study.grids
        for data in grid.data
        for proxy in (grid.proxies if any(method.needs_proxy for method in grid.methods) else grid.proxies[:1])
    )
    times = tuple(_times(folder, cells)) if study.timed else ()
    paper: tuple[PaperValue, ...] = read_paper(study.paper) if study.paper else ()
    rows = [
        (group.data, group.amounts.get(row.size, 1.0), row)
        for group in groups
        if group.report and not group.proxy
        for row in group.report.rows
    ]
    beside = (*compare_rows(rows, paper), *compare_times([(t.data, t.amount, t.method, t) for t in times], paper))
    processes = most_processes(results.values())
    chosen = [results[cell.key] for cell in cells if cell.stage == "choose" and cell.key in results]
    told = ran_on(chosen) if chosen else {}
    return Outcome(study, splits, groups, times, beside, tuple(records), len(results), len(cells), processes, told)


def _origin(cell: Cell, known: Mapping[str, Cell]) -> dict[str, Any]:
    """Where what was trained on came from: the folder in `sets/`, the data's name, the amount, and the proxy."""
    choice = next((known[key] for key in cell.needs), None)
    if choice is None:
        return {}
    proxy = {} if choice.proxy is None else {"proxy": asdict(choice.proxy)}
    return {"chosen": {"data": cell.data, "set": choice.key, cell.budget: cell.amounts[0], **proxy}}


def _group(study: Study, folder: StudyFolder, splits: Splits, grid: Grid, data: str, proxy: Proxy) -> Group:
    fingerprint = splits.train.fingerprint
    sets: dict[str, list[Reduced]] = {}
    amounts: dict[int, float] = {}
    choosing: dict[str, list[float]] = {}
    keys = []
    for seed in study.seeds:
        seen: set[tuple[str, int]] = set()
        for cell in choices(study, grid, data, fingerprint, proxy, seed):
            if cell.method is None or cell.key in keys:  # what serves all seeds comes with each of them
                continue
            keys.append(cell.key)
            if not folder.done(cell.key):
                continue
            name = cell.method.text
            choosing.setdefault(name, []).append(sum(_seconds(folder, cell)))
            for amount in cell.amounts:
                reduced = folder.load_set(cell.method, cell.key, amount)
                # Two shares of little data may come to the same number of samples.
                if (name, len(reduced)) not in seen:
                    seen.add((name, len(reduced)))
                    sets.setdefault(name, []).append(reduced)
                    amounts.setdefault(len(reduced), amount)
        keys += [cell.key for cell in trainings(study, grid, data, fingerprint, proxy, seed)]
        if grid.full and grid.nets:
            sets.setdefault(FULL, []).append(everything(splits.train, seed))
    weighted = [name for name in study.training.weighted if name in sets]
    report = None
    entries: tuple[Entry, ...] = ()
    results = {key: folder.result(key) for key in keys if folder.done(key)}
    partial = len(results) < len(set(keys))
    records = [result["record"] for result in results.values() if "record" in result]
    if records:
        report = gather(
            splits,
            sets,
            records,
            nets=grid.nets,
            seeds=study.seeds,
            weighted=weighted,
            partial=partial,
            oracle=study.oracle,
            reach=study.reach,
        )
        entries = report.entries
    elif sets:
        entries = make_plan(splits, sets, seeds=study.seeds, baseline=False, full=False, weighted=(), partial=partial)
    means = {name: fmean(spent) for name, spent in choosing.items()}
    return Group(data, proxy.describe(grid.proxies), entries, amounts, report, means)


def _seconds(folder: StudyFolder, cell: Cell) -> tuple[float, float, float]:
    """Of the proxy's training, of reading it out, and of the choice."""
    proxy = folder.result(cell.needs[0])["seconds"] if cell.needs else {"train": 0.0, "extract": 0.0}
    return proxy["train"], proxy["extract"], folder.result(cell.key)["seconds"]["select"]


def _times(folder: StudyFolder, cells: Sequence[Cell]) -> Iterator[Time]:
    found: dict[tuple[str, str, float], list[tuple[float, float, float]]] = {}
    for cell in cells:
        if cell.stage != "choose" or cell.method is None or not folder.done(cell.key):
            continue
        found.setdefault((cell.data, cell.method.text, cell.amounts[0]), []).append(_seconds(folder, cell))
    for (data, method, amount), runs in found.items():
        totals = [sum(run) for run in runs]
        train, extract, select = (fmean(parts) for parts in zip(*runs, strict=True))
        yield Time(data, method, amount, len(runs), train, extract, select, min(totals), max(totals))


def _row_dicts(groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    for group in groups:
        for row in group.report.rows if group.report else ():
            yield {"data": group.data, "proxy": group.proxy, "amount": _amount(group, row), **asdict(row)}


def _amount(group: Group, row: Row) -> float:
    return 1.0 if row.name == FULL else group.amounts[row.size]
