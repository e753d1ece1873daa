"""`lcmat select`: from a data set to a run folder with subsets."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress, say
from lcmat.cli.reading import Flip, Image, Label, Resize, TestFraction

if TYPE_CHECKING:
    from lcmat.study.settings import Settings
    from lcmat.study.store import Run


def select(
    data: Annotated[str, typer.Argument(metavar="DATA", help="What to select from; `lcmat list` says what it may be.")],
    method: Annotated[str, typer.Option(help="How to select; `lcmat list` names the methods.")] = "auto",
    fraction: Annotated[
        str | None, typer.Option(help="Share to keep, or several: 0.01,0.05. 0.01 if no budget is given.")
    ] = None,
    count: Annotated[str | None, typer.Option(help="Samples to keep, or several: 100,500.")] = None,
    coverage: Annotated[
        str | None, typer.Option(help="Keep the smallest greedy set that covers this share of every class.")
    ] = None,
    balance: Annotated[str, typer.Option(help="Of the classes: equal, proportional or none.")] = "proportional",
    net: Annotated[
        str, typer.Option(help="Proxy network, such as resnet18 or convnet:width=32. Chosen by the data if not given.")
    ] = "",
    epochs: Annotated[int, typer.Option(help="Epochs of the proxy's training.")] = 10,
    points: Annotated[
        str | None,
        typer.Option(help="Epochs of the proxy to look at, such as 1,2,4. The last one if not given; five for auto."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the method; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of proxy and selection.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder; a new one under runs/ if not given.")] = None,
    resize: Resize = None,
    label: Label = None,
    image: Image = None,
    test_fraction: TestFraction = None,
    flip: Flip = None,
    memory: Annotated[
        str | None, typer.Option(help="For the selection, such as 4GB; half of what is free if not given.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Pick the samples of a data set that are worth training on.

    Trains a proxy network, looks at every sample with it, selects, and keeps the result in a run folder. The same
    command again goes on with an interrupted run, and shows a finished one.
    """
    from lcmat.study.pipeline import Machine, choose, read
    from lcmat.study.settings import Settings
    from lcmat.study.store import Run, check_free

    reading = parsing.reading(resize=resize, label=label, image=image, test_fraction=test_fraction, flip=flip)
    with parsing.as_wrong_use():
        kind, amounts = parsing.budget(fraction, count, coverage)
        asked = Settings(
            source=data,
            reading=reading,
            method=method,
            options=parsing.method_options(method, set_ or []),
            budget=kind,
            amounts=amounts,
            balance=balance,
            net=net,
            epochs=epochs,
            points=tuple(parsing.numbers("--points", points, int)) if points else (),
            seed=seed,
        )
        Machine(device, memory)
        if out is not None:
            check_free(out)

    splits, settings, seconds = read(asked)
    say(splits.summary())
    if settings.needs_proxy:
        say(f"proxy: {settings.net}, {settings.epochs} epochs" + ("" if net else " (chosen by the data; see --net)"))
    run = Run.begin(out or default_folder(settings), settings, splits, seconds)
    with Progress() as progress:
        [run] = choose([run], splits, seed, Machine(device, memory, progress))
    typer.echo(json.dumps(run.summary(), ensure_ascii=False) if as_json else describe(run))


def default_folder(settings: "Settings") -> Path:
    """Where a run goes that was given no folder: each combination of settings has its own."""
    name = Path(settings.source).stem or "data"
    return Path("runs") / f"{name}-{settings.method}-{settings.digest()}"


def describe(run: "Run") -> str:
    """A run in a few lines."""
    settings, lines = run.settings, []
    options = ", ".join(f"{name}={value}" for name, value in settings.options.items())
    lines.append(f"{settings.method}{f' ({options})' if options else ''} on {run.data['name']}, seed {settings.seed}")
    if settings.needs_proxy:
        lines.append(f"proxy: {settings.net}, {settings.epochs} epochs")
    for folder, subset in zip(run.subset_folders(), run.subsets(), strict=True):
        lines.append(f"kept {len(subset):,} of {subset.n:,} samples ({subset.fraction:.2%}): {folder}")
        lines.append(f"  per class: {_per_class(subset.per_class, subset.class_names)}")
        lines += [f"  note: {note}" for note in subset.notes]
    seconds = ", ".join(f"{stage} {value:.1f}" for stage, value in run.summary()["seconds"].items())
    lines.append(f"seconds: {seconds}; peak memory {run.peak_memory_mb:,.0f} MB")
    return "\n".join(lines)


def _per_class(counts: tuple[int, ...], names: tuple[str, ...]) -> str:
    if not counts:
        return "no labels"
    if len(counts) > 20:
        return f"{min(counts)} to {max(counts)} of each of {len(counts)} classes"
    return ", ".join(f"{name}: {count}" for name, count in zip(names, counts, strict=True))
