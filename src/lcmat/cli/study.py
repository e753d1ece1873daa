"""`lcmat study` and `lcmat reproduce`: grids of data, methods, shares, networks and seeds."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcmat.cli import parsing
from lcmat.cli.progress import Progress, say
from lcmat.cli.sharing import SHARING, Minutes, Workers, processes, say_what_is_left, teller

if TYPE_CHECKING:
    from lcmat.study.recipes import Recipe


def study(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The study, as docs/studies.md describes it.")],
    quick: Annotated[bool, typer.Option("--quick", help="Its small form, from the table quick of the file.")] = False,
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SOURCE", help="Load this in place of a data set; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the study; runs/NAME if not given.")] = None,
    memory: Annotated[str | None, typer.Option(help="For selections, such as 4GB.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; a GPU if there is one.")] = None,
    workers: Workers = "1",
    minutes: Minutes = None,
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
    workers: Workers = "1",
    minutes: Minutes = None,
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
        _run_commands(Wanted(recipe.file, quick, data or [], folder, memory, device, workers, minutes, as_json), recipe)
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
    from lcmat.study.run_study import Asked, check_terms, run_study
    from lcmat.study.study_page import as_text
    from lcmat.study.terms import Terms

    with parsing.as_wrong_use():
        asked = Asked(wanted.file, wanted.quick, parsing.assignments("--data", wanted.data))
        study = asked.read()
        number = processes(wanted.workers, Machine(wanted.device, wanted.memory), timed=study.timed)
        terms = Terms(teller(number), say, number, wanted.minutes)
        check_terms(study, terms)
    with Progress() as progress:
        machine = Machine(wanted.device, wanted.memory, progress)
        outcome, page = run_study(asked, wanted.out or Path("runs") / wanted.file.stem, machine, terms)
    say_what_is_left(outcome.done, outcome.total)
    as_json = json.dumps(outcome.as_dict(), ensure_ascii=False) if wanted.as_json else ""
    typer.echo(as_json or f"{as_text(outcome)}\nreport: {page}")


def _run_commands(wanted: Wanted, recipe: "Recipe") -> None:
    """A study that other commands do, one after the other."""
    from contextlib import nullcontext

    from lcmat import runtime
    from lcmat.cli import application
    from lcmat.study.pipeline import Machine

    assert wanted.out is not None  # there is a default for every named study
    with parsing.as_wrong_use():
        given = parsing.assignments("--data", wanted.data)
        commands = recipe.fill_in(wanted.out, quick=wanted.quick, given=given)
        alone = [words[0] for words in commands if words[0] not in SHARING]
        if alone and (wanted.workers not in {"1", "auto"} or wanted.minutes is not None):
            raise ValueError(f"{recipe.name} has commands without --workers and --minutes, {alone[0]}; leave these out")
        processes(wanted.workers, Machine(wanted.device))
    start = time.monotonic()
    with runtime.one_thread() if wanted.quick else nullcontext():  # the digits have no work for more
        for place, words in enumerate(commands, start=1):
            say(f"{place} of {len(commands)}: lcmat {' '.join(words)}")
            more = ["--device", wanted.device] if wanted.device else []
            if words[0] in SHARING:
                more += ["--workers", wanted.workers] if wanted.workers != "1" else []
                if wanted.minutes is not None:  # of all commands together
                    more += ["--minutes", f"{max(0.0, wanted.minutes - (time.monotonic() - start) / 60):.3g}"]
            last = ["--json"] if wanted.as_json and place == len(commands) else []
            if status := application.run([*words, *more, *last]):
                raise typer.Exit(status)
