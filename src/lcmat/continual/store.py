"""What fillers gave, kept in a folder: a memory that took hours is made once and used by every run that wants it."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lcmat import files
from lcmat.continual.memory import Kept
from lcmat.version import __version__

NAME = "memory"


class FillStore:
    """Fillings by all that decides them; without a folder each is made anew."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @staticmethod
    def digest(decisive: Mapping[str, Any]) -> str:
        """Sixteen hexadecimal digits that tell decisions apart."""
        text = json.dumps({**decisive, "lcmat": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def get(self, decisive: Mapping[str, Any], make: Callable[[Path | None], dict[int, Kept]]) -> dict[int, Kept]:
        """What is in the folder for these decisions, else what `make` gives, which is then kept.

        Args:
            decisive: all that decides the result, as JSON has it.
            make: called with a folder for checkpoints of long work, which is removed afterwards.
        """
        if self._folder is None:
            return make(None)
        folder = self._folder / f"{decisive['fill']}-{self.digest(decisive)}"
        if (folder / f"{NAME}.json").exists():
            meta, tensors = files.load_artifact(folder, NAME)
            return {int(index): Kept(tensors[index], int(meta["views"][index])) for index in meta["views"]}
        working = folder / "working"
        kept = make(working)
        views = {str(index): part.views for index, part in kept.items()}
        files.save_artifact(
            folder, NAME, {"decisive": dict(decisive), "views": views},
            {str(index): part.inputs for index, part in kept.items()},
        )  # fmt: skip
        shutil.rmtree(working, ignore_errors=True)
        return kept
