"""Evaluation of runs: fresh networks on what they keep, seed by seed, with records and page in a folder."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lcmat import files
from lcmat.evaluation import Report, evaluate
from lcmat.evaluation.gallery import PAGE_BYTES
from lcmat.evaluation.page import describe
from lcmat.networks import build
from lcmat.networks.build import parse as parse_net
from lcmat.report import Page, render
from lcmat.study import commands
from lcmat.study.pipeline import Machine, choose, read_again
from lcmat.study.store import Run
from lcmat.types import Splits, Subset


@dataclass(frozen=True)
class Protocol:
    """How runs are compared.

    Attributes:
        nets: trained on each subset; the proxies' where empty.
        seeds: how many; seed i trains on what proxy i and selection i chose.
        epochs: of each training.
        same_subset: whether all seeds train on the run's own subset, which makes them dependent.
        full: whether everything is trained on too.
        weighted: methods whose subset's weights count in the loss.
        oracle: whether to test after each epoch as well.
        reach: an accuracy whose time is asked for.
        steps: of each training, in place of epochs.
        augment: False for none; None for that of the protocol.
    """

    nets: tuple[str, ...] = ()
    seeds: int = 6
    epochs: int = 200
    same_subset: bool = False
    full: bool = False
    weighted: tuple[str, ...] = ()
    oracle: bool = False
    reach: float | None = None
    steps: int | None = None
    augment: bool | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.epochs < 1:
            raise ValueError(f"expected at least 1 seed and 1 epoch, got {self.seeds} and {self.epochs}")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"expected at least 1 step, got {self.steps}")
        if self.reach is not None and not 0 < self.reach <= 1:
            raise ValueError(f"expected an accuracy to reach above 0 and at most 1, got {self.reach}")
        for net in self.nets:
            parse_net(net)
        if len(set(self.nets)) < len(self.nets):
            raise ValueError(f"expected different networks, got one twice: {', '.join(self.nets)}")


def check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs on different data, and a run given twice.

    Raises:
        ValueError: naming two runs that cannot be compared.
    """
    for position, run in enumerate(runs):
        if run.data["fingerprint"] != runs[0].data["fingerprint"]:
            raise ValueError(
                f"{runs[0].path} and {run.path} were chosen from different data "
                f"({runs[0].data['name']} and {run.data['name']}); evaluate them one by one"
            )
        if any(run.path.resolve() == other.path.resolve() for other in runs[:position]):
            raise ValueError(f"the run {run.path} is given twice")


def check_protocol(runs: Sequence[Run], protocol: Protocol, folder: Path, splits: Splits) -> None:
    """Refuse what would fail only after the proxies are trained.

    Raises:
        ValueError: for networks that do not suit the data, weights of a method that is not compared, a subset of one
            class, or no folder.
    """
    for net in protocol.nets:
        build(net, splits.train)
    names = name_runs(runs)
    for name in protocol.weighted:
        if name not in names:
            raise ValueError(f"weights are asked for of {name!r}, which is not among: {', '.join(names)}")
    for run in runs:
        for place, subset in zip(run.subset_folders(), run.subsets(), strict=False):  # of a run begun there are none
            if len(set(splits.train.labels[subset.indices].tolist())) == 1:
                raise ValueError(
                    f"{place} holds samples of one class only ({len(subset)}), on which nothing can be trained; "
                    "select again with a larger budget"
                )
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"expected a folder for the records and the page, but {folder} is a file")


def compare(
    runs: Sequence[Run], protocol: Protocol, folder: Path, machine: Machine, splits: Splits | None = None
) -> tuple[Report, Path]:
    """Choose with every seed what is not chosen yet, train on it, and write records and page.

    Args:
        runs: on the same data, all complete or all with the same seed.
        protocol: of the evaluation.
        folder: for `records.jsonl`, `evaluation.json` and `report.html`.
        machine: to work on.
        splits: the data, where it is loaded already.

    Returns:
        The report and the path of its page.
    """
    check_comparable(runs)
    splits = read_again(runs[0]) if splits is None else splits
    check_protocol(runs, protocol, folder, splits)
    first = min(run.settings.seed for run in runs)
    seeds = range(first, first + protocol.seeds)
    for seed in () if protocol.same_subset else seeds:
        runs = choose(runs, splits, seed, machine)
    named = name_runs(runs)
    follow = machine.follow("training on what is kept")
    report = evaluate(
        splits,
        {name: _subsets(run, None if protocol.same_subset else seeds) for name, run in named.items()},
        nets=protocol.nets or tuple(dict.fromkeys(run.settings.net for run in runs)),
        epochs=protocol.epochs if protocol.steps is None else None,
        steps=protocol.steps,
        augment=protocol.augment,
        seeds=seeds,
        full=protocol.full,
        weighted=protocol.weighted,
        oracle=protocol.oracle,
        reach=protocol.reach,
        records=folder / "records.jsonl",
        device=machine.device,
        progress=None if follow is None else lambda done, total, _: follow(done, total),
    )
    page = files.write_text(folder / "report.html", render(_describe(report, named, protocol, folder, PAGE_BYTES)))
    paths = [os.path.relpath(run.path, folder) for run in runs]
    files.write_json(folder / "evaluation.json", {"format": 1, "runs": paths, "protocol": asdict(protocol)})
    return report, page


def describe_again(folder: Path, machine: Machine, page_bytes: int = PAGE_BYTES) -> Page:
    """The page of an evaluation; what stands in its records is not trained again.

    Raises:
        ValueError: when there was no evaluation in this folder.
    """
    if not (folder / "evaluation.json").is_file():
        raise ValueError(f"{folder} holds no evaluation; run `lcmat evaluate {folder}` first")
    meta = files.read_json(folder / "evaluation.json")
    try:
        paths = [Path(os.path.normpath(folder / path)) for path in meta["runs"]]
        asked = meta["protocol"]
        protocol = Protocol(**{**asked, "nets": tuple(asked["nets"]), "weighted": tuple(asked.get("weighted", ()))})
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / 'evaluation.json'} does not describe an evaluation: {error!r}") from None
    runs = [Run.open(path) for path in paths]
    report, _ = compare(runs, protocol, folder, machine)
    return _describe(report, name_runs(runs), protocol, folder, page_bytes)


def _describe(report: Report, runs: Mapping[str, Run], protocol: Protocol, folder: Path, page_bytes: int) -> Page:
    chosen = [commands.select_command(run) for run in runs.values()]
    return describe(
        report,
        pictures=True,
        title="",
        folders={name: run.subset_folders()[0] for name, run in runs.items()},
        stages={name: run.seconds for name, run in runs.items()},
        commands=[*chosen, commands.evaluate_command([run.path for run in runs.values()], protocol, folder)],
        page_bytes=page_bytes,
    )


def name_runs(runs: Sequence[Run]) -> dict[str, Run]:
    """A name for each run: its method, with its folder where several runs share the method."""
    methods = [run.settings.method for run in runs]
    return {
        method if methods.count(method) == 1 else f"{method} ({run.path})": run
        for method, run in zip(methods, runs, strict=True)
    }


def _subsets(run: Run, seeds: Sequence[int] | None) -> list[Subset]:
    """The subsets of all seeds, or the run's own; two budgets that come to the same size count once."""
    return [
        subset
        for seed in ([None] if seeds is None else seeds)
        for subset in {len(subset): subset for subset in run.subsets(seed)}.values()
    ]
