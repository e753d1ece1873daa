"""What the processes of a crew are told, and how they talk to the one that started them."""

from dataclasses import asdict, dataclass
from pathlib import Path

from lcmat import files

INTERRUPTED = 130
WARNING, CELL = "warning: ", "cell: "  # begin the lines on standard error that the crew reads


@dataclass(frozen=True)
class Task:
    """What every process of a crew is told.

    Attributes:
        study: folder of the study or comparison.
        failures: folder where cells that failed are noted.
        device: to work on.
        memory: for selections, of all processes together; a share of what is free when None.
        threads: of torch.
        processes: that share the work.
        until: when no further cell is begun, by `time.monotonic`, which all processes share; None for no limit.
    """

    study: str
    failures: str
    device: str
    memory: str | None
    threads: int
    processes: int
    until: float | None

    def save(self, path: Path) -> Path:
        """Write it where the processes will read it."""
        return files.write_json(path, asdict(self))
