"""`lcmat evaluate` and `lcmat report`: how well networks train on what runs keep."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress

if TYPE_CHECKING:
    from lcmat.evaluation import Report


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders on the same data.")],
    nets: Annotated[
        str, typer.Option(help="Networks to train, such as resnet18,convnet:width=32; the proxy's if not given.")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Independent runs: a proxy, a selection and a training each.")] = 6,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of each training; 200 if not given, 1,000 for condensed sets.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps of each training instead, the same for every size.")
    ] = None,
    augment: Annotated[bool, typer.Option("--augment/--no-augment", help="Crop and flip the images.")] = True,
    same_subset: Annotated[
        bool, typer.Option("--same-subset", help="Train all seeds on the run's own subset; they are then dependent.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Train on everything as well.")] = False,
    weighted: Annotated[
        str, typer.Option(help="Methods whose weights count in the loss, such as craig; none if not given.")
    ] = "",
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Test after each epoch too; the best one stands under oracle, no result.")
    ] = False,
    reach: Annotated[
        float | None, typer.Option(help="An accuracy such as 0.9: after how many seconds it is first reached.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for records and report; the first run's if not given.")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="For selecting again, such as 4GB; half of what is free.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows, records and protocol as JSON.")] = False,
) -> None:
    """Train fresh networks on what runs keep, and on random sets of the same size.

    For each further seed, proxy and selection are repeated with it, so that n counts independent runs. Trainings are
    recorded one by one: the same command again goes on with what is missing.
    """
    from lcmat.study.comparison import Protocol, check_comparable, compare
    from lcmat.study.condensed import evaluate_condensed, holds_condensed
    from lcmat.study.pipeline import Machine
    from lcmat.study.store import Run

    if epochs is not None and steps is not None:
        raise parsing.WrongUseError(f"give --epochs or --steps, got both ({epochs} and {steps})")
    condensed = [run for run in runs if holds_condensed(run)]
    if condensed and len(condensed) < len(runs):
        selected = next(run for run in runs if run not in condensed)
        raise parsing.WrongUseError(
            f"{condensed[0]} holds condensed samples, {selected} does not; evaluate the two kinds one by one"
        )
    if condensed and weighted:
        raise parsing.WrongUseError("--weighted is for runs of select: condensed samples have no weights")
    if condensed:
        with Progress() as progress:
            report, page = evaluate_condensed(
                runs,
                out or runs[0],
                seeds=seeds,
                nets=parsing.names(nets),
                epochs=epochs,
                full=full,
                oracle=oracle,
                reach=reach,
                steps=steps,
                augment=None if augment else False,
                device=device,
                progress=lambda done, total, _: progress("training on synthetic sets", done, total),
            )
        _tell(report, page, as_json=as_json)
        return
    with parsing.as_wrong_use():
        protocol = Protocol(
            parsing.names(nets),
            seeds,
            200 if epochs is None else epochs,
            same_subset,
            full,
            parsing.names(weighted),
            oracle,
            reach,
            steps,
            None if augment else False,
        )
        opened = [Run.open(path) for path in runs]
        check_comparable(opened)
        Machine(device, memory)
    with Progress() as progress:
        report, page = compare(opened, protocol, out or runs[0], Machine(device, memory, progress))
    _tell(report, page, as_json=as_json)


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of evaluated runs, evaluations, studies or comparisons."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="One page for all of them, this file; each its own in its folder if not given.")
    ] = None,
) -> None:
    """Make report pages anew, from their records, or one page of several runs."""
    from lcmat.study.pages import render_folders
    from lcmat.study.pipeline import Machine

    with Progress() as progress:
        pages = render_folders(folders, Machine(progress=progress), out)
    for page in pages:
        typer.echo(f"report: {page}")


def _tell(report: "Report", page: Path, *, as_json: bool) -> None:
    typer.echo(json.dumps(report.as_dict(), ensure_ascii=False) if as_json else f"{report.table()}\nreport: {page}")
