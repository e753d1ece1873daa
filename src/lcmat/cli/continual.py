"""`lcmat continual`: memories for class-incremental learning, compared."""

from pathlib import Path
from typing import Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.reading import Flip, Image, Label, Resize, TestFraction
from lcmat.cli.sharing import Minutes, Workers, carry_out


def continual(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The data set; `lcmat list` says what it may be.")],
    steps: Annotated[int, typer.Option(help="Steps that the classes are spread over.")] = 5,
    classes: Annotated[int | None, typer.Option(help="Use only the first so many classes of the data.")] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Memory: samples of each class. 10 if no budget is given.")
    ] = None,
    total: Annotated[
        int | None, typer.Option(help="Memory: samples in all, shared equally by the classes so far.")
    ] = None,
    fill: Annotated[
        str, typer.Option(help="What fills the memories: selectors and condensers, with commas between.")
    ] = "lcmat-s,herding,uniform",
    protocol: Annotated[
        str,
        typer.Option(help="memory: a fresh network on the memory alone; replay: one network on new data and memory."),
    ] = "memory",
    seeds: Annotated[int, typer.Option(help="Streams, each with its own order of the classes.")] = 3,
    net: Annotated[str, typer.Option(help="The network that is judged; one that suits the data if not given.")] = "",
    epochs: Annotated[int, typer.Option(help="Epochs of each of its trainings.")] = 200,
    proxy: Annotated[str, typer.Option(help="The network that selectors look with; --net if not given.")] = "",
    proxy_epochs: Annotated[int, typer.Option(help="Epochs of its training on what arrives.")] = 10,
    batch_size: Annotated[int, typer.Option(help="Samples in a step of training.")] = 128,
    lr: Annotated[float, typer.Option(help="Highest learning rate; it falls along a cosine.")] = 0.1,
    augment: Annotated[
        str, typer.Option(help="Operations of DSA for the judged network, such as color_crop_cutout.")
    ] = "",
    condense_steps: Annotated[int, typer.Option(help="Steps of each condensation.")] = 1000,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="FILL.OPTION=VALUE", help="An option, such as lcmat-s.rho=0.1.")
    ] = None,
    workers: Workers = "1",
    minutes: Minutes = None,
    out: Annotated[Path, typer.Option(help="Folder for records, memories and report.")] = Path("runs/continual"),
    resize: Resize = None,
    label: Label = None,
    image: Image = None,
    test_fraction: TestFraction = None,
    flip: Flip = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows, records and protocol as JSON.")] = False,
) -> None:
    """Fill replay memories in every way, and test networks on all classes so far after each step.

    Proxies, memories and trainings are kept one by one: the same command again goes on with what is missing, and given
    at the same time in several places it shares the work among them. So does --workers, with one command.
    """
    from lcmat.condensation import CONDENSERS
    from lcmat.continual import Budget, make_filler
    from lcmat.continual.settings import Settings
    from lcmat.selection import SELECTORS
    from lcmat.study.pipeline import Machine
    from lcmat.study.trial import Trial

    fills = parsing.names(fill)
    reading = parsing.reading(resize=resize, label=label, image=image, test_fraction=test_fraction, flip=flip)
    with parsing.as_wrong_use():
        machine = Machine(device)
        parsing.check_seeds(seeds)
        options = parsing.named_options("FILL", set_ or [], (CONDENSERS, SELECTORS))
        budget = Budget(per_class=10 if per_class is None and total is None else per_class, total=total)
        if unused := sorted(set(options) - set(fills)):
            raise ValueError(f"--set gives options for {', '.join(unused)}, which fill nothing here")
        for name in fills:
            make_filler(name, condense_steps=condense_steps, options=options.get(name))
        Settings(protocol, net, epochs, proxy, proxy_epochs, batch_size, lr, augment or True)
    settings = {
        "fill": fills, "classes": classes, "steps": steps, "per_class": budget.per_class, "total": budget.total,
        "protocol": protocol, "net": net, "epochs": epochs, "proxy": proxy, "proxy_epochs": proxy_epochs,
        "batch_size": batch_size, "lr": lr, "augment": augment or True, "seeds": list(range(seeds)),
        "condense_steps": condense_steps, "options": options,
    }  # fmt: skip
    trial = Trial("lcmat continual", data, reading, settings, command=parsing.as_typed("--minutes"))
    carry_out(trial, out, machine, workers, minutes, as_json=as_json)
