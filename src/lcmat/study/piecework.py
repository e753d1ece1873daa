"""What the processes of one command share: pieces of work, the folder that knows which are done, and who does them."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lcmat import files


class Piece(Protocol):
    """One piece of work, such as the cell of a study."""

    @property
    def key(self) -> str:
        """A file name that stands for all that its result depends on."""
        ...

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def stage(self) -> str:
        """Pieces of one stage take time in proportion to their efforts."""
        ...

    @property
    def effort(self) -> float:
        """How long it takes, in units that mean the same within one stage."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of the pieces that come before."""
        ...


PieceT = TypeVar("PieceT", bound=Piece)
PieceT_contra = TypeVar("PieceT_contra", bound=Piece, contravariant=True)


class Doer(Protocol[PieceT_contra]):
    """Does one piece after the other."""

    def do(self, piece: PieceT_contra, /) -> dict[str, Any]:
        """The result, as JSON has it."""
        ...


@dataclass(frozen=True)
class PieceFolder:
    """A folder with a file for each piece that is done, written last and whole.

    Attributes:
        path: of the folder.
    """

    path: Path

    def done(self, key: str) -> bool:
        """Whether a piece is finished."""
        return self._result(key).exists()

    def result(self, key: str) -> dict[str, Any]:
        """What a finished piece left."""
        found: dict[str, Any] = files.read_json(self._result(key))
        return found

    def finish(self, key: str, result: Mapping[str, Any]) -> None:
        """Mark a piece as finished."""
        files.write_json(self._result(key), result)

    def prepare(self, pieces: Sequence[Any]) -> None:
        """Bring back what was removed and is wanted after all; here nothing."""

    def tidy(self, piece: Any, pieces: Sequence[Any]) -> None:
        """Remove what nobody needs once a piece is done; here nothing."""

    def lock(self, key: str) -> Path:
        """The lock of a piece."""
        return self.path / "locks" / f"{key}.lock"

    def work(self, key: str) -> Path:
        """Where a piece keeps what it needs to go on after a kill."""
        return self.path / "work" / key

    def drop_work(self, key: str) -> None:
        """Remove what a piece no longer needs."""
        shutil.rmtree(self.work(key), ignore_errors=True)

    def _result(self, key: str) -> Path:
        return self.path / "cells" / f"{key}.json"


def check_free(path: Path, what: str, *, own: bool) -> None:
    """Refuse a place where a new or continued piece of work would meet anything else; nothing in it is touched.

    Args:
        path: of the folder.
        what: is to lie there, in words.
        own: whether it is that already.
    """
    if path.exists() and not path.is_dir():
        raise ValueError(f"expected a folder for the {what}, but {path} is a file; name another with --out")
    foreign = path.is_dir() and any(not name.match("*.part") for name in path.iterdir())
    if foreign and not own:
        raise ValueError(f"the folder {path} is not empty and no {what} of lcmat; name another with --out")
