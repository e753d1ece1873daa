"""Progress on stderr: a bar with the time left on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

import typer

from lcmat.cli import parsing

if TYPE_CHECKING:
    import rich.progress

SECONDS_BETWEEN_LINES = 10.0


def say(text: str) -> None:
    """A message to people, apart from the result."""
    typer.echo(parsing.as_options(text), err=True)


class Progress:
    """Called with (stage, steps done, steps in all); a context manager, so that the bars are closed."""

    def __init__(self) -> None:
        self._bars = _make_bars() if sys.stderr.isatty() else None
        self._tasks: dict[str, rich.progress.TaskID] = {}
        self._started: dict[str, float] = {}
        self._next_line = 0.0

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        """Show a step, with a few words on it such as the loss."""
        if self._bars:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total, note=note)
            self._bars.update(self._tasks[stage], completed=done, total=total, note=note)
        else:
            self._write_line(stage, done, total, note)

    def _write_line(self, stage: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if stage not in self._started:
            self._started[stage] = now
        elif now < self._next_line and done < total:
            return
        self._next_line = now + SECONDS_BETWEEN_LINES
        elapsed = now - self._started[stage]
        left = f", about {elapsed / done * (total - done):,.0f} s left" if 0 < done < total and elapsed > 1 else ""
        say(f"{stage}: {done:,} of {total:,}{left}" + (f"; {note}" if note else ""))


def _make_bars() -> "rich.progress.Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
    )
