"""`lcmat condense` and `lcmat join`: a few synthetic samples of each class, in a run folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress, say
from lcmat.cli.reading import Flip, Image, Label, Resize, TestFraction

if TYPE_CHECKING:
    from lcmat.types import SyntheticSet


def condense(
    data: Annotated[str, typer.Argument(metavar="DATA", help="What to condense; `lcmat list` says what it may be.")],
    method: Annotated[str, typer.Option(help="How to condense; `lcmat list` names the condensers.")] = "lcmat-c",
    per_class: Annotated[int, typer.Option(help="Stored samples of each class.")] = 10,
    steps: Annotated[int, typer.Option(help="Updates of the samples, in all.")] = 1000,
    net: Annotated[str, typer.Option(help="Network that looks at the samples. Chosen by the data if not given.")] = "",
    factor: Annotated[int, typer.Option(help="Each stored image holds FACTOR × FACTOR smaller ones.")] = 1,
    start: Annotated[str, typer.Option(help="noise or real samples; the method's own choice if not given.")] = "",
    labels: Annotated[str, typer.Option(help="hard, or soft: from a teacher trained on all the data.")] = "hard",
    classes: Annotated[
        str, typer.Option(help="A shard of the classes, such as 0-9 or 0,3,5-7; `lcmat join` joins shards.")
    ] = "",
    together: Annotated[
        int | None, typer.Option(help="Classes in one computation; all if not given, fewer take less memory.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the method; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder; a new one under runs/ if not given.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run, or continue one to more --steps.")
    ] = False,
    quick: Annotated[int, typer.Option(help="Epochs of a quick training at each look; 0 for none.")] = 100,
    watch_every: Annotated[int, typer.Option(help="Steps between two looks.")] = 250,
    resize: Resize = None,
    label: Label = None,
    image: Image = None,
    test_fraction: TestFraction = None,
    flip: Flip = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Learn a few synthetic samples of each class from which fresh networks train well.

    Keeps the set, a picture grid and the course of loss and accuracy in a run folder; `lcmat evaluate RUN` judges it.
    """
    from lcmat import runtime
    from lcmat.condensation import CONDENSERS
    from lcmat.study.condensing import Request, Work, read_data, run_condensation, with_net

    reading = parsing.reading(resize=resize, label=label, image=image, test_fraction=test_fraction, flip=flip)
    with parsing.as_wrong_use():
        request = Request(
            source=data,
            reading=reading,
            method=method,
            options=parsing.entry_options(CONDENSERS.find(method), set_ or []),
            per_class=per_class,
            net=net,
            factor=factor,
            start=start,
            labels=labels,
            classes=parsing.indices("--classes", classes),
            seed=seed,
        )
        for name, value in (("--steps", steps), ("--watch-every", watch_every)):
            if value < 1:
                raise ValueError(f"{name} takes a number of at least 1, got {value}")
        runtime.pick_device(device)
    splits = read_data(request)
    say(splits.summary())
    request = with_net(request, splits)
    folder = out or Path("runs") / f"{Path(request.source).stem or 'data'}-{method}-{request.digest()}"
    with Progress() as progress:
        work = Work(
            steps=steps,
            resume=resume,
            together=together,
            quick=quick,
            watch_every=watch_every,
            device=device,
            progress=lambda done, total, loss: progress("condensing", done, total, f"loss {loss:.4g}"),
            say=say,
        )
        tiny = run_condensation(request, splits, folder, work)
    tell(folder, tiny, as_json=as_json)


def join(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of shards of the classes.")],
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Join shards of the classes, condensed apart from each other, to one set."""
    from lcmat.study.condensed import join_runs

    tell(out, join_runs(runs, out), as_json=as_json)


def tell(folder: Path, tiny: "SyntheticSet", *, as_json: bool) -> None:
    """Print what a run folder holds."""
    typer.echo(json.dumps(summary(folder, tiny), ensure_ascii=False) if as_json else describe(folder, tiny))


def summary(folder: Path, tiny: "SyntheticSet") -> dict[str, object]:
    """What `--json` prints."""
    return {
        "run": str(folder),
        "method": tiny.method,
        "options": dict(tiny.options),
        "n": tiny.n,
        "count": len(tiny),
        "per_class": list(tiny.per_class),
        "factor": tiny.factor,
        "labels": tiny.label_kind,
        "steps": tiny.recipe.get("steps"),
        "seconds": tiny.recipe.get("seconds"),
    }


def describe(folder: Path, tiny: "SyntheticSet") -> str:
    """A run in a few lines."""
    options = ", ".join(f"{name}={value}" for name, value in tiny.options.items())
    amounts = sorted({count for count in tiny.per_class if count})
    lines = [
        f"{tiny.method}{f' ({options})' if options else ''}, seed {tiny.seed}, {tiny.recipe.get('steps', 0):,} steps "
        f"in {tiny.recipe.get('seconds', 0):,} s",
        f"{len(tiny)} synthetic samples, {', '.join(map(str, amounts))} of each class, from {tiny.n:,}: "
        f"{folder / 'synthetic'}",
        f"labels: {tiny.label_kind}" + (f"; {tiny.factor}² images in each" if tiny.factor > 1 else ""),
        *(f"note: {note}" for note in tiny.notes),
    ]
    if tiny.are_images:
        lines.append(f"pictures: {folder / 'grid.png'}")
    return "\n".join(lines)
