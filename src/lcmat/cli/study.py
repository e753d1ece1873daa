"""`lcmat study` and `lcmat reproduce`: grids of data, methods, shares, networks and seeds."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress, say

if TYPE_CHECKING:
    from lcmat.study.pipeline import Machine
    from lcmat.study.recipes import Recipe

SECONDS_BETWEEN_LINES = 5.0

_WORKERS = "Processes that share the study; auto takes one on a CPU and up to six on a GPU."
_MINUTES = "Begin no further cell after so many, 0 for the page alone; the same command again goes on."


def study(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The study, as docs/studies.md describes it.")],
    quick: Annotated[bool, typer.Option("--quick", help="Its small form, from the table quick of the file.")] = False,
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SOURCE", help="Load this in place of a data set; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the study; runs/NAME if not given.")] = None,
    memory: Annotated[str | None, typer.Option(help="For selections, such as 4GB.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    workers: Annotated[str, typer.Option(metavar="N|auto", help=_WORKERS)] = "1",
    minutes: Annotated[float | None, typer.Option(help=_MINUTES)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows, times and the paper's values as JSON.")] = False,
) -> None:
    """Run a study: every combination of what stands in its file, each only once.

    The same command again goes on with what is missing, and given at the same time in several places it shares the
    work among them. So does --workers, with one command on one machine.
    """
    _run(Wanted(file, quick, data or [], out, memory, device, workers, minutes, as_json))


def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A named study; see --list.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Name all studies and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small form on the digits, in seconds.")] = False,
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SOURCE", help="Load this in place of a data set; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the study; runs/NAME if not given.")] = None,
    memory: Annotated[str | None, typer.Option(help="For selections, such as 4GB.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    workers: Annotated[str, typer.Option(metavar="N|auto", help=_WORKERS)] = "1",
    minutes: Annotated[float | None, typer.Option(help=_MINUTES)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows, times and the paper's values as JSON.")] = False,
) -> None:
    """Repeat a table or figure of the paper, and print our values, the paper's and the difference."""
    from lcmat.study.recipes import find_recipe, recipes

    if list_all:
        known = recipes()
        width = max(map(len, known))
        for recipe in known.values():
            typer.echo(f"{recipe.name:<{width}}  {recipe.title}")
        return
    if name is None:
        raise parsing.WrongUseError("name a study, or give --list")
    with parsing.as_wrong_use():
        recipe = find_recipe(name)
    folder = out or Path("runs") / (f"{name}-quick" if quick else name)
    if recipe.commands:
        if workers not in {"1", "auto"} or minutes is not None:
            raise parsing.WrongUseError(f"{name} is a row of commands and no grid; leave out --workers and --minutes")
        _run_commands(recipe, quick, data or [], folder, device, as_json)
        return
    _run(Wanted(recipe.file, quick, data or [], folder, memory, device, workers, minutes, as_json))


@dataclass(frozen=True)
class Wanted:
    """What stands on the command line of a study."""

    file: Path
    quick: bool
    data: list[str]
    out: Path | None
    memory: str | None
    device: str | None
    workers: str
    minutes: float | None
    as_json: bool


def _run(wanted: Wanted) -> None:
    from lcmat.study.pipeline import Machine
    from lcmat.study.run_study import Asked, Terms, run_study
    from lcmat.study.study_page import as_text

    with parsing.as_wrong_use():
        asked = Asked(wanted.file, wanted.quick, parsing.assignments("--data", wanted.data))
        study = asked.read()
        processes = _processes(wanted.workers, Machine(wanted.device, wanted.memory), timed=study.timed)
        terms = Terms(_tell(processes), say, processes, wanted.minutes)
        terms.check(study)
    with Progress() as progress:
        machine = Machine(wanted.device, wanted.memory, progress)
        outcome, page = run_study(asked, wanted.out or Path("runs") / wanted.file.stem, machine, terms)
    if outcome.done < outcome.total:
        say(f"{outcome.done:,} of {outcome.total:,} cells are done; give the same command again for the rest")
    as_json = json.dumps(outcome.as_dict(), ensure_ascii=False) if wanted.as_json else ""
    typer.echo(as_json or f"{as_text(outcome)}\nreport: {page}")


def _processes(text: str, machine: "Machine", *, timed: bool) -> int:
    """How many processes are meant."""
    from lcmat import runtime
    from lcmat.study.crew import best_number

    if text == "auto":
        return 1 if timed else best_number(runtime.pick_device(machine.device))
    if not text.isdecimal() or int(text) < 1:
        raise parsing.WrongUseError(f"--workers takes a whole number from 1, or auto, got {text!r}")
    return int(text)


def _run_commands(recipe: "Recipe", quick: bool, data: list[str], out: Path, device: str | None, as_json: bool) -> None:
    """A study that other commands do, one after the other."""
    from contextlib import nullcontext

    from lcmat import runtime
    from lcmat.cli import application

    with parsing.as_wrong_use():
        commands = recipe.fill_in(out, quick=quick, given=parsing.assignments("--data", data))
    more = ["--device", device] if device else []
    with runtime.one_thread() if quick else nullcontext():  # the digits have no work for more
        for place, words in enumerate(commands, start=1):
            say(f"{place} of {len(commands)}: lcmat {' '.join(words)}")
            last = ["--json"] if as_json and place == len(commands) else []
            if status := application.run([*words, *more, *last]):
                raise typer.Exit(status)


def _tell(processes: int) -> Callable[[int, int, float | None, str], None]:
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
