"""`lcmat curvature`: gradient and curvature terms, sharpness and loss surfaces of what runs hold."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress

_CHOICES = {"head": ("head",), "all": ("all",), "both": ("head", "all")}


def curvature(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders on the same data.")],
    parameters: Annotated[
        str, typer.Option(help="head (the last layer), all (the whole network, minutes on a CPU) or both.")
    ] = "both",
    rho: Annotated[
        float | None, typer.Option(help="Radius of the ball; the rho of a selection, or 0.1, if not given.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Samples of the data for the whole network; 5,000, fewer on a CPU, if not given.")
    ] = None,
    resolution: Annotated[
        int | None, typer.Option(help="Points along each axis of the loss surface, odd; 51, on a CPU 25, if not given.")
    ] = None,
    weighted: Annotated[bool, typer.Option("--weighted", help="Use the weights of the method.")] = False,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Leave the loss surfaces out.")] = False,
    seed: Annotated[int, typer.Option(help="Of every draw.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Page to write; curvature.html in the first run's folder if not given.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Show how far what runs of select or condense hold is from the data in loss, gradient and curvature.

    At the parameters of the first selection's proxy: both terms of the paper's bound, eigenvalues, the sharpness that
    is really found, where the Hessian diagonals differ, the generalisation bound, loss surfaces. Beside each set stands
    a random one of its size. The page comes with a folder of its name that holds the data as CSV and NPZ.
    """
    from lcmat.study.curvature import measure_curvature, open_runs, write_curvature
    from lcmat.study.pipeline import Machine

    with parsing.as_wrong_use():
        if parameters not in _CHOICES:
            raise ValueError(f"--parameters takes {', '.join(_CHOICES)}, got {parameters!r}")
        if rho is not None and not rho > 0:
            raise ValueError(f"--rho takes a radius above 0, got {rho}")
        if resolution is not None and (resolution < 3 or resolution % 2 == 0):
            raise ValueError(f"--resolution takes an odd number of at least 3, got {resolution}")
        if samples is not None and samples < 1:
            raise ValueError(f"--samples takes a number of at least 1, got {samples}")
        opened = open_runs(runs)
        Machine(device)
    page = out or runs[0] / "curvature.html"
    if page.suffix.lower() != ".html":
        raise parsing.WrongUseError(f"--out takes the name of a page, such as page.html, got {page}")
    with Progress() as progress:
        report = measure_curvature(
            opened,
            Machine(device, progress=progress),
            parameters=_CHOICES[parameters],
            rho=rho,
            samples=samples,
            resolution=resolution,
            weighted=weighted,
            pictures=not no_pictures,
            seed=seed,
        )
    folder = write_curvature(report, opened, page, [parsing.as_typed()])
    if as_json:
        typer.echo(json.dumps(report.as_dict(), ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(f"{report.table()}\ndata: {folder}\npage: {page}")
