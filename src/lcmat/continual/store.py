"""What fillers gave, kept in a folder: a memory that took hours is made once and used by every run that wants it."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from lcmat import files
from lcmat.continual.memory import Kept
from lcmat.version import __version__

NAME = "memory"

# folder for checkpoints -> what is kept of each class, and the seconds that it takes by itself
Make: TypeAlias = Callable[[Path | None], tuple[dict[int, Kept], float]]


class FillStore:
    """Fillings by all that decides them; without a folder each is made anew."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @staticmethod
    def digest(decisive: Mapping[str, Any]) -> str:
        """Sixteen hexadecimal digits that tell decisions apart."""
        text = json.dumps({**decisive, "lcmat": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def get(self, decisive: Mapping[str, Any], make: Make) -> tuple[dict[int, Kept], float]:
        """What is in the folder for these decisions, else what `make` gives, which is then kept; and its seconds.

        Args:
            decisive: all that decides the result, as JSON has it.
            make: called with a folder for checkpoints of long work, which is removed afterwards.
        """
        if self._folder is None:
            return make(None)
        folder = self._folder / f"{decisive['fill']}-{self.digest(decisive)}"
        if (folder / f"{NAME}.json").exists():
            meta, tensors = files.load_artifact(folder, NAME)
            kept = {int(index): Kept(tensors[index], int(meta["views"][index])) for index in meta["views"]}
            return kept, float(meta["seconds"])
        working = folder / "working"
        kept, seconds = make(working)
        views = {str(index): part.views for index, part in kept.items()}
        files.save_artifact(
            folder, NAME, {"decisive": dict(decisive), "views": views, "seconds": seconds},
            {str(index): part.inputs for index, part in kept.items()},
        )  # fmt: skip
        shutil.rmtree(working, ignore_errors=True)
        return kept, seconds
