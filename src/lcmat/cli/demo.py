"""`lcmat demo`: the main job on an embedded data set."""

from pathlib import Path
from typing import Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress, say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(help="Independent runs: a proxy, a selection and a training each.")] = 5,
) -> None:
    """Select from 1,797 real images of digits, train on what is kept, and write a report.

    Compares auto, lcmat-s, craig and random sets at 2 % and 10 %. Takes about a minute on two cores.
    """
    from lcmat.study.demo import run_demo

    parsing.check_seeds(seeds)
    with Progress() as progress:
        report, page = run_demo(out, seeds, progress, say)
    typer.echo(f"{report.table()}\nreport: {page}")
