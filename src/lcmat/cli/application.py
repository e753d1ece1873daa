"""The commands put together, and what the process says and returns when one of them fails."""

import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, NoReturn, cast

import typer

from lcmat.cli import parsing
from lcmat.cli.catalogue import list_names
from lcmat.cli.condense import condense, join
from lcmat.cli.continual import continual
from lcmat.cli.curvature import curvature
from lcmat.cli.demo import demo
from lcmat.cli.dynamic import dynamic
from lcmat.cli.evaluate import evaluate, report
from lcmat.cli.folders import export, show
from lcmat.cli.parsing import WrongUseError
from lcmat.cli.plan import plan
from lcmat.cli.select import select
from lcmat.cli.study import reproduce, study
from lcmat.version import __version__

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

# Newer versions of Typer hold a copy of click of their own; this is the class of wrong use in both.
UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])

app = typer.Typer(
    name="lcmat",
    help="Make labelled data sets small: pick the few per cent of the samples worth training on, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "select": select,
    "condense": condense,
    "join": join,
    "evaluate": evaluate,
    "curvature": curvature,
    "dynamic": dynamic,
    "continual": continual,
    "plan": plan,
    "study": study,
    "reproduce": reproduce,
    "list": list_names,
    "show": show,
    "export": export,
    "report": report,
}
for name, command in _COMMANDS.items():
    app.command(name)(command)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lcmat {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Options that stand before the command."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong use, 130 interrupted."""
    warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a code page without '−' must not cost the result of hours
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run the command line; the exit status."""
    try:
        with parsing.typed(arguments):
            status = app(arguments, prog_name="lcmat", standalone_mode=False)
    except UsageError as error:
        return _fail(WRONG_USE, error.format_message(), "see `lcmat --help` and `lcmat COMMAND --help`")
    except WrongUseError as error:
        return _fail(WRONG_USE, str(error))
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError, MemoryError, RuntimeError) as error:
        if os.environ.get("LCMAT_DEBUG") == "1":
            raise
        return _fail(FAILED, *_explain(error))
    if status == INTERRUPTED:
        how = " with --resume" if arguments[:1] == ["condense"] and "--resume" not in arguments else ""
        _fail(INTERRUPTED, f"interrupted; give the same command again{how} to go on from where it stopped")
    return int(status or DONE)


def _fail(status: int, message: str, advice: str = "") -> int:
    typer.echo(f"error: {parsing.as_options(message)}" + (f"\n{advice}" if advice else ""), err=True)
    return status


def _explain(error: Exception) -> tuple[str, str]:
    """What went wrong and what to do, in a line each."""
    if isinstance(error, RuntimeError) and type(error).__module__.startswith("lcmat."):  # written for users, in lines
        return str(error), "give the same command again to try the rest once more"
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return "out of memory", "give a smaller --memory, fewer samples, or a machine with more"
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}", "what was there before is untouched; mend this and give the command again"
    if isinstance(error, RuntimeError):  # torch's, which may be long and is not written for users of lcmat
        return str(error).partition("\n")[0], "LCMAT_DEBUG=1 shows where"
    return str(error) or type(error).__name__, ""
