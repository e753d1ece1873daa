"""`lcmat evaluate` and `lcmat report`: how well networks train on what runs keep."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders on the same data.")],
    nets: Annotated[
        str, typer.Option(help="Networks to train, such as resnet18,convnet:width=32; the proxy's if not given.")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Independent runs: a proxy, a selection and a training each.")] = 6,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.")] = 200,
    same_subset: Annotated[
        bool, typer.Option("--same-subset", help="Train all seeds on the run's own subset; they are then dependent.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Train on everything as well.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for records and report; the first run's if not given.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows, records and protocol as JSON.")] = False,
) -> None:
    """Train fresh networks on what runs keep, and on random sets of the same size.

    For each further seed, proxy and selection are repeated with it, so that n counts independent runs. Trainings are
    recorded one by one: the same command again goes on with what is missing.
    """
    from lcmat.study.comparison import Protocol, check_comparable, compare
    from lcmat.study.pipeline import Machine
    from lcmat.study.store import Run

    with parsing.as_wrong_use():
        protocol = Protocol(parsing.names(nets), seeds, epochs, same_subset, full)
        opened = [Run.open(path) for path in runs]
        check_comparable(opened)
        Machine(device)
    with Progress() as progress:
        report, page = compare(opened, protocol, out or runs[0], Machine(device, progress=progress))
    typer.echo(json.dumps(report.as_dict(), ensure_ascii=False) if as_json else f"{report.table()}\nreport: {page}")


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or the --out folder of an evaluation.")
    ],
) -> None:
    """Make the report pages of evaluated runs anew, from their records."""
    from lcmat.study.comparison import render_again
    from lcmat.study.pipeline import Machine

    for folder in folders:
        with Progress() as progress:
            page = render_again(folder, Machine(progress=progress))
        typer.echo(f"report: {page}")
