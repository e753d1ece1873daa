"""The folder of a study: one place that knows what lies where in it.

    STUDY/study.toml           the file it was made from
    STUDY/study.json           what the file says, resolved; versions
    STUDY/cells/KEY.json       the result of each finished cell
    STUDY/sets/KEY/AMOUNT/     what was chosen or made, a Subset or a SyntheticSet
    STUDY/work/KEY/            checkpoints of proxies and condensations while they are needed
    STUDY/locks/KEY.lock       the cells that a process is at
    STUDY/records.jsonl        one line for each training
    STUDY/results.json         rows, the paper's values beside them, seconds
    STUDY/results.csv          the rows
    STUDY/results.md           tables of all results as Markdown
    STUDY/report.html          the page

A cell is finished when its file is there, which is written last and whole: a process may be killed at any point.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from lcmat import files, runtime
from lcmat.study.cells import Cell, amount_name
from lcmat.study.config import read_study
from lcmat.study.design import Study
from lcmat.study.method import Method
from lcmat.study.piecework import PieceFolder, check_free
from lcmat.types import Reduced, Subset, SyntheticSet

KIND = "lcmat study"


@dataclass(frozen=True)
class StudyFolder(PieceFolder):
    """One study folder."""

    @classmethod
    def begin(cls, path: str | Path, study: Study, file: Path, *, quick: bool, sources: Mapping[str, str]) -> Self:
        """Start a study in a new or empty folder, or go on with the one that is there.

        The study may have grown since: cells that were finished and still belong to it are not done again. What is
        kept of it is enough to make its page anew wherever the folder is.

        Args:
            path: of the folder.
            study: that is meant.
            file: that it was read from; a copy is kept, and one of the paper's values.
            quick: whether in its small form.
            sources: name of a data set -> what stands in its place.

        Raises:
            ValueError: when the folder holds anything else; nothing in it is touched.
        """
        path = Path(path)
        check_free(path, "study", own=is_study(path))
        # Whole at once: the same command, given a second time, writes it while the processes of the first read it.
        meta = {"kind": KIND, "study": _jsonable(asdict(study)), "versions": runtime.versions()}
        files.write_json(path / "study.json", {**meta, "quick": quick, "sources": dict(sources)})
        if file.resolve() != (path / "study.toml").resolve():
            files.write_bytes(path / "study.toml", file.read_bytes())
        if study.paper and not (kept := path / "paper" / study.paper.name).exists():
            files.write_bytes(kept, study.paper.read_bytes())
        return cls(path)

    def read(self) -> tuple[Study, dict[str, str]]:
        """The study that was begun here, and what stands in the place of its data sets.

        Raises:
            ValueError: when its description is damaged.
        """
        meta = files.read_json(self.path / "study.json")
        try:
            name, quick, sources = str(meta["study"]["name"]), bool(meta["quick"]), dict(meta["sources"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self.path / 'study.json'} does not describe a whole study: {error!r}") from None
        # What the other form needs, such as its data, may be gone by now.
        return replace(read_study(self.path / "study.toml", quick=quick, both=False), name=name), sources

    def prepare(self, pieces: Sequence[Cell]) -> None:
        """Take back that a proxy is done which `tidy` removed, or a copy left out, and which a cell is to look with.

        The study has grown since. Once it is a cell again one process trains it, and not each that looks with it.
        """
        looking = [piece for piece in pieces if piece.stage == "choose" and not self.done(piece.key)]
        for key in {key for piece in looking for key in piece.needs}:
            if not self.work(key).exists():
                with suppress(FileNotFoundError):  # where it is to be done already
                    self._result(key).replace(self._before(key))

    def result(self, key: str) -> dict[str, Any]:
        """What a finished cell left; of a proxy that is wanted anew, what it left before."""
        if not self.done(key) and self._before(key).exists():
            found: dict[str, Any] = files.read_json(self._before(key))
            return found
        return super().result(key)

    def _before(self, key: str) -> Path:
        return self.path / "cells" / f"{key}.before"

    def tidy(self, piece: Cell, pieces: Sequence[Cell]) -> None:
        """Remove the checkpoints behind a finished choice: its own, its proxy's when no other will look with it."""
        if piece.stage != "choose":
            return
        self.drop_work(piece.key)
        for key in piece.needs:
            if all(self.done(other.key) for other in pieces if key in other.needs):
                self.drop_work(key)

    def save_sets(self, cell: Cell, sets: Mapping[float, Reduced]) -> None:
        """Keep what a cell chose or made."""
        for amount, reduced in sets.items():
            reduced.save(self.set_folder(cell.key, amount))

    def load_set(self, method: Method, key: str, amount: float) -> Reduced:
        """What a cell chose or made for one amount."""
        folder = self.set_folder(key, amount)
        return SyntheticSet.load(folder) if method.condenses else Subset.load(folder)

    def set_folder(self, key: str, amount: float) -> Path:
        """Where one set lies."""
        return self.path / "sets" / key / amount_name(amount)


def is_study(path: Path) -> bool:
    """Whether a folder holds a study."""
    if not (path / "study.json").is_file():
        return False
    meta = files.read_json(path / "study.json")
    return isinstance(meta, dict) and meta.get("kind") == KIND


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(part) for part in value]
    return value.name if isinstance(value, Path) else value  # it is kept in the folder, which may be handed on
