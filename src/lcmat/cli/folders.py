"""`lcmat show` and `lcmat export`: what lies in a run folder, and a way out of it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.condense import tell as tell_condensed
from lcmat.cli.select import describe


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print what `lcmat select --json` printed.")] = False,
) -> None:
    """Show what a run kept, with which settings."""
    from lcmat.study.condensed import holds_condensed, open_condensed
    from lcmat.study.store import Run

    if holds_condensed(run):
        with parsing.as_wrong_use():
            tiny = open_condensed(run)
        tell_condensed(run, tiny, as_json=as_json)
        return
    with parsing.as_wrong_use():
        opened = Run.open(run)
    typer.echo(json.dumps(opened.summary(), ensure_ascii=False) if as_json else describe(opened))


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    to: Annotated[str, typer.Option(help="csv, parquet or folder (of images, by class).")] = "csv",
    out: Annotated[Path | None, typer.Option(help="File or folder to write; beside the subset if not given.")] = None,
    subset: Annotated[
        str | None, typer.Option(help="Which budget, such as 0.05 or count-100, where the run has several.")
    ] = None,
) -> None:
    """Write the kept rows as a table, as Parquet that `lcmat.load` reads, or as an image folder."""
    from lcmat.study.condensed import holds_condensed, open_condensed
    from lcmat.study.export import FORMATS, export_subset, export_synthetic, pick_subset
    from lcmat.study.store import Run

    with parsing.as_wrong_use():
        if to not in FORMATS:
            raise ValueError(f"--to takes {', '.join(FORMATS)}, got {to!r}")
        if holds_condensed(run):
            target = out or run / "exports" / f"synthetic{FORMATS[to]}"
            typer.echo(f"{export_synthetic(open_condensed(run), to, target)}")
            return
        opened = Run.open(run)
        folder = pick_subset(opened, subset)
        target = out or opened.path / "exports" / f"{folder.name}{FORMATS[to]}"
        if target.exists():
            raise ValueError(f"{target} exists already; name another path with --out")
    typer.echo(f"{export_subset(opened, folder, to, target)}")
