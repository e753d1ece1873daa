"""How work is carried out: by how many processes, for how long, and who is told; nothing here decides a result."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcmat.study.conduct import Tell, conduct
from lcmat.study.crew import Crew
from lcmat.study.piecework import Doer, PieceFolder, PieceT
from lcmat.study.pipeline import Machine


@dataclass(frozen=True)
class Terms:
    """How work is carried out.

    Attributes:
        tell: told how far it is.
        say: told what else there is to know.
        processes: that share the work.
        minutes: after which no further cell is begun, 0 to write the page of what is done; None for no limit.
    """

    tell: Tell | None = None
    say: Callable[[str], None] = lambda _: None
    processes: int = 1
    minutes: float | None = None

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ValueError(f"expected at least 1 process, got {self.processes}")
        if self.minutes is not None and not self.minutes >= 0:
            raise ValueError(f"expected minutes of 0 or more, got {self.minutes}")

    def until(self) -> float:
        """When no further cell is begun, by `time.monotonic`, where the time begins now."""
        return math.inf if self.minutes is None else time.monotonic() + 60 * self.minutes

    def carry_out(
        self, pieces: Sequence[PieceT], folder: PieceFolder, worker: Doer[PieceT], machine: Machine, until: float
    ) -> None:
        """Do all pieces that are not done yet, here or by several processes.

        Raises:
            CellsFailedError: when some pieces failed; all others are done then.
            CrewFailedError: when processes failed, and the others could not do all that was left.
        """
        if time.monotonic() < until:
            folder.prepare(pieces)
        processes = min(self.processes, sum(not folder.done(piece.key) for piece in pieces))
        if processes > 1 and time.monotonic() < until:  # for the page alone none is started
            Crew(folder, machine, processes, until).conduct(pieces, self.tell, self.say)
        else:
            conduct(pieces, folder, worker, self.tell, until=until)
