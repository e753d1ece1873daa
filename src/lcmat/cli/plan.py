"""`lcmat plan`: time and memory before starting."""

import json
from typing import Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import say
from lcmat.cli.reading import Flip, Image, Label, Resize, TestFraction


def plan(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The data set; `lcmat list` says what it may be.")],
    method: Annotated[str, typer.Option(help="How to select; `lcmat list` names the methods.")] = "auto",
    fraction: Annotated[str, typer.Option(help="Share to keep, or several: 0.01,0.05.")] = "0.01",
    net: Annotated[str, typer.Option(help="Proxy network. Chosen by the data if not given.")] = "",
    epochs: Annotated[int, typer.Option(help="Epochs of the proxy's training.")] = 10,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the method; repeatable.")
    ] = None,
    nets: Annotated[str, typer.Option(help="Networks trained on what is kept; the proxy's if not given.")] = "",
    train_epochs: Annotated[int, typer.Option(help="Epochs of each of these trainings.")] = 200,
    seeds: Annotated[int, typer.Option(help="Independent runs; 0 for the selection alone.")] = 6,
    full: Annotated[bool, typer.Option("--full", help="Train on everything as well.")] = False,
    resize: Resize = None,
    label: Label = None,
    image: Image = None,
    test_fraction: TestFraction = None,
    flip: Flip = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as one JSON object.")] = False,
) -> None:
    """Say how long a selection and its evaluation will take, and how much memory.

    Tries a few steps of each part on this machine, for some seconds, and scales them up.
    """
    from lcmat.data import load
    from lcmat.networks.build import parse as parse_net
    from lcmat.study.pipeline import Machine
    from lcmat.study.plan import Request, make_plan
    from lcmat.study.settings import default_net

    reading = parsing.reading(resize=resize, label=label, image=image, test_fraction=test_fraction, flip=flip)
    with parsing.as_wrong_use():
        Machine(device)
        options = parsing.method_options(method, set_ or [])
        fractions = tuple(parsing.numbers("--fraction", fraction, float))
        if not all(0 < share <= 1 for share in fractions):
            raise ValueError(f"--fraction takes shares above 0 and at most 1, got {fraction}")
        if min(epochs, train_epochs) < 1 or seeds < 0:
            raise ValueError("expected at least 1 epoch and no negative number of seeds")
        for name in (*([net] if net else []), *parsing.names(nets)):
            parse_net(name)
    splits = load(data, quiet=True, **reading)
    say(splits.summary())
    proxy = net or default_net(splits.train)
    request = Request(
        method, options, fractions, proxy, epochs, parsing.names(nets) or (proxy,), train_epochs, seeds, full
    )
    found = make_plan(splits, request, device)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
        return
    for what, seconds in (
        (f"proxy ({proxy}, {epochs} epochs)", found.proxy),
        ("extraction", found.extract),
        (f"selection ({method})", found.select),
        (f"trainings of one seed ({', '.join(request.nets)}, {train_epochs} epochs)", found.trainings),
    ):
        typer.echo(f"{what}: {parsing.duration(seconds)}")
    typer.echo(f"in all, {seeds} seeds: {parsing.duration(found.total)}")
    typer.echo(f"memory at the peak: {found.memory / 1e9:.2f} GB")
    for note in found.notes:
        typer.echo(f"note: {note}")
