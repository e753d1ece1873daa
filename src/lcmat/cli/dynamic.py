"""`lcmat dynamic`: static and dynamic selection side by side."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lcmat.cli import parsing
from lcmat.cli.reading import Flip, Image, Label, Resize, TestFraction
from lcmat.cli.sharing import Minutes, Workers, carry_out


def dynamic(
    data: Annotated[str, typer.Argument(metavar="DATA", help="What to train on; `lcmat list` says what it may be.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Selectors, static:SELECTOR, random, random:replacement, infobatch, full; with commas between."
        ),
    ] = "static:lcmat-s,lcmat-s,craig,random,infobatch,full",
    fraction: Annotated[str, typer.Option(help="Share of the data in an epoch, or several: 0.05,0.1.")] = "0.1",
    every: Annotated[str, typer.Option(help="Epochs between two choices, or several: 1,5,20.")] = "5",
    pool: Annotated[
        str, typer.Option(help="Choose from a random pool of this share, or several: 0.2,1; 1 is everything.")
    ] = "1",
    warmup: Annotated[int, typer.Option(help="First epochs of dynamic selectors that visit everything.")] = 0,
    weighted: Annotated[str, typer.Option(help="Selectors whose weights go into the loss: craig,gradmatch.")] = "",
    net: Annotated[str, typer.Option(help="The network; one that suits the data if not given.")] = "",
    epochs: Annotated[int, typer.Option(help="Epochs of each training.")] = 200,
    proxy_epochs: Annotated[int, typer.Option(help="Epochs of the proxy that chooses a static subset.")] = 10,
    seeds: Annotated[int, typer.Option(help="Runs of each arm.")] = 3,
    lr: Annotated[float, typer.Option(help="Highest learning rate; it falls along a cosine.")] = 0.1,
    batch_size: Annotated[int, typer.Option(help="Samples in a step.")] = 128,
    looks: Annotated[int, typer.Option(help="How often each training is tested along the way.")] = 10,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="METHOD.OPTION=VALUE", help="An option, such as infobatch.prune=0.3."),
    ] = None,
    workers: Workers = "1",
    minutes: Minutes = None,
    out: Annotated[Path, typer.Option(help="Folder for records and report.")] = Path("runs/dynamic"),
    resize: Resize = None,
    label: Label = None,
    image: Image = None,
    test_fraction: TestFraction = None,
    flip: Flip = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows, records and protocol as JSON.")] = False,
) -> None:
    """Train with subsets chosen once and chosen anew, and compare accuracy and seconds.

    The same command again goes on with what is missing, and given at the same time in several places it shares the
    work among them. So does --workers, with one command on one machine.
    """
    from lcmat.dynamic.arms import make_arms
    from lcmat.dynamic.baselines import BASELINES
    from lcmat.dynamic.trainings import Settings
    from lcmat.selection import SELECTORS
    from lcmat.study.pipeline import Machine
    from lcmat.study.trial import Trial

    reading = parsing.reading(resize=resize, label=label, image=image, test_fraction=test_fraction, flip=flip)
    with parsing.as_wrong_use():
        machine = Machine(device)
        fractions = parsing.numbers("--fraction", fraction, float)
        turns = parsing.numbers("--every", every, int)
        pools = [None if share == 1 else share for share in parsing.numbers("--pool", pool, float)]
        parsing.check_seeds(seeds)
        Settings(net, epochs, proxy_epochs, batch_size, lr, "cosine", looks, "cpu")
        options = parsing.named_options("METHOD", set_ or [], (BASELINES, SELECTORS))
        settings: dict[str, Any] = {
            "methods": parsing.names(methods),
            "fractions": fractions,
            "every": turns,
            "pools": pools,
            "warmup": warmup,
            "weighted": parsing.names(weighted),
            "options": options,
            "epochs": epochs,
        }
        # Whatever the data, these must make sense; n is as good as any large number.
        make_arms(**settings, n=10**6)
    settings |= {
        "net": net, "proxy_epochs": proxy_epochs, "seeds": list(range(seeds)), "lr": lr, "batch_size": batch_size,
        "looks": looks,
    }  # fmt: skip
    trial = Trial("lcmat dynamic", data, reading, settings, command=parsing.as_typed("--minutes"))
    carry_out(trial, out, machine, workers, minutes, as_json=as_json)
