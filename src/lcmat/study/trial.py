"""`lcmat dynamic` and `lcmat continual` as work for several processes: one folder, its pieces, who does them.

FOLDER/study.json           what was asked for, the command, versions
FOLDER/cells/KEY.json       the result of each finished piece: a proxy, a filling, a training
FOLDER/memories/            what continual runs keep of each class
FOLDER/work/                proxies that several pieces look with
FOLDER/locks/KEY.lock       the pieces that a process is at
FOLDER/records.jsonl        one line for each training
FOLDER/results.json         rows, records, protocol, notes
FOLDER/results.csv          the rows
FOLDER/results.md           the same as Markdown
FOLDER/report.html          the page
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lcmat import continual, dynamic, files, runtime
from lcmat.continual.walks import Task as Step
from lcmat.continual.walks import Walks
from lcmat.data import load
from lcmat.data.loading import absolute
from lcmat.dynamic.trainings import Task as Training
from lcmat.dynamic.trainings import Trainings
from lcmat.evaluation.account import reuse_note
from lcmat.evaluation.findings import Findings
from lcmat.pieces import Piece
from lcmat.report import Page
from lcmat.study.conduct import CellsFailedError
from lcmat.study.crew import CrewFailedError
from lcmat.study.design import Source, locate
from lcmat.study.piecework import PieceFolder, check_free
from lcmat.study.pipeline import Machine
from lcmat.study.settings import default_net
from lcmat.study.terms import Terms
from lcmat.study.worker import SMALL
from lcmat.training.shared import Proxies
from lcmat.types import Splits


class Work(ABC):
    """A comparison as pieces of work in one folder."""

    data: Splits

    @abstractmethod
    def pieces(self) -> Sequence[Piece]:
        """In an order in which each comes after those that it needs."""

    @abstractmethod
    def carry_out(self, piece: Any) -> dict[str, Any]:
        """Do a piece; what its file will hold, a record under 'record' where it is a result."""

    @abstractmethod
    def study(self, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> Findings:
        """What the records say."""


class DynamicWork(Work):
    """The trainings of `lcmat dynamic`."""

    def __init__(self, data: Splits, settings: Mapping[str, Any], home: Path, kind: str, device: torch.device) -> None:
        self.data, self._device = data, device
        self._trainings = Trainings.plan(data, **settings, device=kind)
        self._proxies = Proxies(home / "work")

    def pieces(self) -> Sequence[Training]:
        """Proxies and trainings."""
        return self._trainings.pieces()

    def carry_out(self, piece: Training) -> dict[str, Any]:
        """A record, or seconds."""
        found = self._trainings.do(piece, self._proxies, self._device)
        return found if piece.stage == "proxy" else {"record": found}

    def study(self, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> dynamic.Study:
        """What the records say."""
        return self._trainings.study(records, notes)


class ContinualWork(Work):
    """The walks of `lcmat continual`."""

    def __init__(self, data: Splits, settings: Mapping[str, Any], home: Path, kind: str, device: torch.device) -> None:
        given = dict(settings)
        given.pop("classes", None)  # which the data holds already
        self.data, self._home, self._device = data, home, device
        self._walks = Walks.plan(self.data, **given, device=kind)
        self._proxies = Proxies(home / "work")
        self._own: tuple[int, Proxies] = -1, Proxies()  # of a seed, for the walks that this process takes

    def pieces(self) -> Sequence[Step]:
        """Proxies, fillings and trainings."""
        return self._walks.pieces()

    def carry_out(self, piece: Step) -> dict[str, Any]:
        """A record, or seconds."""
        assert piece.filler is not None
        # Proxies of steps that stand alone are pieces of their own; two processes must not train another one at once.
        if self._own[0] != piece.seed:
            self._own = piece.seed, Proxies()
        proxies = self._own[1] if piece.stage == "walk" else self._proxies
        walk = self._walks.walk(piece.filler, piece.seed, self._device, folder=self._home, proxies=proxies)
        found = self._walks.do(piece, walk)
        return {"record": found} if piece.stage in {"walk", "train"} else found

    def study(self, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> continual.Study:
        """What the records say."""
        return self._walks.study(records, notes)


_KINDS: dict[str, type[DynamicWork] | type[ContinualWork]] = {
    "lcmat dynamic": DynamicWork,
    "lcmat continual": ContinualWork,
}


@dataclass(frozen=True)
class Trial:
    """What a user asked for.

    Attributes:
        kind: 'lcmat dynamic' or 'lcmat continual'.
        source: of the data.
        reading: further arguments of `lcmat.load`.
        settings: of the comparison, as JSON has them.
        device: the kind of device that it is done on.
        command: as it was given.
    """

    kind: str
    source: str
    reading: Mapping[str, Any]
    settings: Mapping[str, Any]
    device: str = "cpu"
    command: str = ""

    def load(self) -> Splits:
        """The data, whole; where its path is that of another machine, a folder of its name in `LCMAT_DATA`."""
        place = Path(self.source)
        moved = place.is_absolute() and not place.exists()
        source = locate(Source("", self.source, place.name)) if moved else self.source
        return load(source, quiet=True, **self.reading)

    def cut(self, data: Splits) -> Splits:
        """The classes of the data that are wanted."""
        classes = self.settings.get("classes")
        return data if classes is None else continual.first_classes(data, classes)

    def for_data(self, data: Splits) -> "Trial":
        """With a network that suits the data, where none is named, and as a folder will hold it."""
        settings = {**self.settings, "net": self.settings["net"] or default_net(data.train)}
        return replace(self, source=absolute(self.source), settings=json.loads(json.dumps(settings)))

    def work(self, data: Splits, home: Path, device: torch.device | None = None) -> Work:
        """The pieces of work; on a device, where they are to be done."""
        return _KINDS[self.kind](data, self.settings, home, self.device, device or torch.device("cpu"))


class TrialWorker:
    """Does the pieces of a comparison, one after the other."""

    def __init__(self, work: Work, processes: int = 1) -> None:
        self._work, self._processes = work, processes

    def do(self, piece: Piece, /) -> dict[str, Any]:
        """What the file of the piece will hold."""
        small = self._work.data.train.inputs[0].numel() <= SMALL
        with runtime.one_thread() if small else nullcontext():
            found = self._work.carry_out(piece)
        if "record" in found:
            found = {"record": {**found["record"], "processes": self._processes}}
        return found


def run_trial(
    trial: Trial, data: Splits, path: Path, machine: Machine, terms: Terms
) -> tuple[Findings, tuple[int, int]]:
    """Do what is not done yet, beside other processes at the same folder, and write results and page.

    Where pieces failed or the time ran out, results and page hold what is there.

    Returns:
        The results, and how many pieces of how many are done.

    Raises:
        ValueError: for settings that do not fit the data, or a folder that holds something else.
        CellsFailedError: when some pieces failed; all others are done then.
        CrewFailedError: when processes failed, and the others could not do all that was left.
    """
    until = terms.until()
    device = runtime.pick_device(machine.device)
    trial = replace(trial.for_data(data), device=device.type)
    work = trial.work(data, path, device)
    check_free(path, trial.kind.removeprefix("lcmat ") + " comparison", own=is_trial(path, trial.kind))
    _check_device(path, trial)
    files.write_json(path / "study.json", {**asdict(trial), "versions": runtime.versions()})
    folder, pieces = PieceFolder(path), work.pieces()
    before = len(_records(folder, pieces))
    try:
        terms.carry_out(pieces, folder, TrialWorker(work), machine, until)
    except (CellsFailedError, CrewFailedError):
        work.study(_records(folder, pieces)).save(path, commands=[trial.command])
        raise
    records = _records(folder, pieces)
    found = work.study(records, reuse_note(before, len(records)))
    found.save(path, commands=[trial.command])
    return found, (sum(folder.done(piece.key) for piece in pieces), len(pieces))


def _check_device(path: Path, trial: Trial) -> None:
    """Refuse to go on with another kind of device: nothing that was done would count."""
    before = files.read_json(path / "study.json").get("device") if (path / "study.json").is_file() else trial.device
    if before != trial.device:
        raise ValueError(
            f"{path} was begun on {before}, and results of {trial.device} are others; give --device {before}, another "
            f"folder with --out, or `lcmat report {path}` to see what is there"
        )


def open_trial(path: Path, device: torch.device | None = None) -> tuple[Trial, Work]:
    """The comparison that was begun in a folder.

    Raises:
        ValueError: when its description is damaged.
    """
    meta = files.read_json(path / "study.json")
    try:
        trial = Trial(**{name: meta[name] for name in Trial.__dataclass_fields__})
    except KeyError as error:
        raise ValueError(f"{path / 'study.json'} does not describe a whole comparison: {error} is missing") from None
    return trial, trial.work(trial.cut(trial.load()), path, device)


def describe_again(path: Path) -> Page:
    """The page of the comparison in a folder, of what is done of it."""
    trial, work = open_trial(path)
    return work.study(_records(PieceFolder(path), work.pieces())).page([trial.command])


def is_trial(path: Path, kind: str | None = None) -> bool:
    """Whether a folder holds a comparison of this kind, or of any."""
    if not (path / "study.json").is_file():
        return False
    meta = files.read_json(path / "study.json")
    return isinstance(meta, dict) and meta.get("kind") in ({kind} if kind else set(_KINDS))


def _records(folder: PieceFolder, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    results = [folder.result(piece.key) for piece in pieces if folder.done(piece.key)]
    return [result["record"] for result in results if "record" in result]
