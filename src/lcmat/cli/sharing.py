"""What commands share that give their work to several processes and can be stopped after some minutes."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import say

if TYPE_CHECKING:
    from lcmat.study.pipeline import Machine
    from lcmat.study.trial import Trial

SECONDS_BETWEEN_LINES = 5.0
SHARING = frozenset({"study", "reproduce", "dynamic", "continual"})  # commands that have these options

Workers: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="N|auto", help="Processes that share the work; auto takes one on a CPU and up to six on a GPU."
    ),
]
Minutes: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Begin no further cell after so many, 0 for the page alone; the same command again goes on."),
]


def processes(text: str, machine: "Machine", *, timed: bool = False) -> int:
    """How many processes are meant."""
    from lcmat import runtime
    from lcmat.study.crew import best_number

    if text == "auto":
        return 1 if timed else best_number(runtime.pick_device(machine.device))
    if not text.isdecimal() or int(text) < 1:
        raise parsing.WrongUseError(f"--workers takes a whole number from 1, or auto, got {text!r}")
    return int(text)


def carry_out(
    trial: "Trial", out: Path, machine: "Machine", workers: str, minutes: float | None, *, as_json: bool
) -> None:
    """Do a comparison, and tell what came of it."""
    from lcmat.study.terms import Terms
    from lcmat.study.trial import run_trial

    with parsing.as_wrong_use():
        number = processes(workers, machine)
        terms = Terms(teller(number), say, number, minutes)
    splits = trial.load()
    with parsing.as_wrong_use():
        splits = trial.cut(splits)
    say(splits.summary())
    found, (done, total) = run_trial(trial, splits, out, machine, terms)
    say_what_is_left(done, total)
    page = out / "report.html"
    typer.echo(json.dumps(found.as_dict(), ensure_ascii=False) if as_json else f"{found.table()}\nreport: {page}")


def say_what_is_left(done: int, total: int) -> None:
    """Say that work is left, where some is."""
    if done < total:
        say(f"{done:,} of {total:,} cells are done; give the same command again for the rest")


def teller(processes: int) -> Callable[[int, int, float | None, str], None]:
    """Says now and then which cell is at hand, and how long it may still take."""
    latest = -SECONDS_BETWEEN_LINES

    def tell(done: int, total: int, left: float | None, at_hand: str) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest < SECONDS_BETWEEN_LINES:
            return
        latest = now
        time_left = "" if left is None else f", about {parsing.duration(left)} left"
        place = f"cell {done + 1:,} of {total:,}" if processes == 1 else f"{done:,} of {total:,} cells done"
        say(f"{place}{time_left}: {at_hand}")

    return tell
