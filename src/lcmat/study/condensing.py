"""From a data set to a synthetic set in a run folder, and how well networks train on it.

RUN/condense.json      what was asked for, the data, and whether the run is complete
RUN/checkpoint/        where an interrupted or a longer run goes on
RUN/synthetic/         the SyntheticSet
RUN/grid.png           its images, renewed as they grow
RUN/progress.jsonl     a line for each look: step, loss, seconds, accuracy of a quick training
RUN/records.jsonl      one line for each training of an evaluation
RUN/report.html        the evaluation's page
"""

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lcmat import files, networks, runtime, seeding, training
from lcmat.condensation import CONDENSERS, DivergenceError, condense
from lcmat.condensation.plan import default_net
from lcmat.data import load
from lcmat.data.loading import absolute
from lcmat.evaluation.settings import PROTOCOLS
from lcmat.types import ImageData, Splits, SyntheticSet

KIND = "lcmat condensation"
_SMALL_IMAGE = 16  # pixels; below it a second thread costs more than it gives


@dataclass(frozen=True)
class Request:
    """What decides the result of one run.

    Attributes:
        source: what `lcmat.load` reads; a path is kept absolute.
        reading: further arguments of `lcmat.load` that were given.
        method: the condenser.
        options: of it, as given.
        per_class: stored samples of each class.
        net: that looks at the samples; chosen by the data when empty.
        factor: of multi-formation.
        start: 'noise' or 'real'; the method's own when empty.
        labels: 'hard' or 'soft'.
        classes: indices of a shard; empty for all of them.
        seed: of everything random.
    """

    source: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    method: str = "lcmat-c"
    options: Mapping[str, Any] = field(default_factory=dict)
    per_class: int = 10
    net: str = ""
    factor: int = 1
    start: str = ""
    labels: str = "hard"
    classes: tuple[int, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        entry = CONDENSERS.find(self.method)
        known = {"per_class": max(1, self.per_class)} if entry.accepts("per_class") else {}
        entry.function(**known, **entry.check_options(self.options))
        if self.per_class < 1:
            raise ValueError(f"expected per_class of at least 1, got {self.per_class}")
        object.__setattr__(self, "source", absolute(self.source))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return {**asdict(self), "classes": list(self.classes)}

    def digest(self) -> str:
        """Eight hexadecimal digits that tell requests apart."""
        return files.fingerprint(json.dumps(self.as_dict(), sort_keys=True))[:8]


@dataclass(frozen=True)
class Work:
    """How a run is carried out; nothing here decides a result but the number of steps.

    Attributes:
        steps: in all.
        resume: whether to go on with what the folder holds.
        together: classes in one computation; all of them if None.
        quick: epochs of the quick training at each look; 0 for none.
        watch_every: steps between two looks.
        device: such as 'cpu' or 'cuda:1'; chosen when None.
        progress: told of steps done, steps in all and the loss.
        say: told of what was seen.
    """

    steps: int = 1000
    resume: bool = False
    together: int | None = None
    quick: int = 100
    watch_every: int = 250
    device: str | None = None
    progress: Callable[[int, int, float], None] | None = None
    say: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("watch_every", 1), ("quick", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"expected {name} of at least {least}, got {getattr(self, name)}")


def run_condensation(request: Request, splits: Splits, folder: Path, work: Work) -> SyntheticSet:
    """Condense into a run folder; an interrupted run goes on, and a finished one with fewer steps is continued.

    Raises:
        ValueError: when the folder holds something else, or a run that is not to be resumed.
    """
    fresh = not (folder / "condense.json").exists()
    _open_folder(request, splits, folder, work)
    watch = _Watch(splits, folder, work)
    with threads_for(splits):
        try:
            tiny = condense(
                splits.train,
                request.method,
                per_class=request.per_class,
                steps=work.steps,
                net=request.net,
                factor=request.factor,
                start=request.start or None,
                labels=request.labels,
                classes=request.classes or None,
                together=work.together,
                seed=request.seed,
                checkpoint=folder / "checkpoint",
                device=work.device,
                progress=watch.follow,
                watch=watch.look,
                watch_every=work.watch_every,
                **request.options,
            )
        except DivergenceError as error:
            error.kept.rounded().save(folder / "synthetic")
            raise
        except (ValueError, TypeError):
            if fresh:
                _leave(folder)
            raise
        tiny = tiny.rounded()
        tiny.save(folder / "synthetic")
        watch.draw(tiny)
    files.write_json(folder / "condense.json", {**_description(request, splits), "complete": True})
    return tiny


def read_data(request: Request) -> Splits:
    """The data of a request."""
    return load(request.source, quiet=True, **request.reading)


class _Watch:
    """Looks at a condensation as it goes: loss, quick accuracy, pictures."""

    def __init__(self, splits: Splits, folder: Path, work: Work) -> None:
        self._splits, self._folder, self._work = splits, folder, work
        self._loss = float("nan")

    def follow(self, done: int, total: int, loss: float) -> None:
        """Remember the loss, and pass it on."""
        self._loss = loss
        if self._work.progress is not None:
            self._work.progress(done, total, loss)

    def look(self, step: int, tiny: SyntheticSet) -> None:
        """Draw the set, train on it quickly, and write down both."""
        self.draw(tiny)
        line: dict[str, Any] = {"step": step, "loss": self._loss, "seconds": tiny.recipe["seconds"]}
        text = f"step {step:,}: loss {self._loss:.4g}"
        if self._work.quick and len(set(tiny.labels.tolist())) > 1:
            accuracy = quick_accuracy(tiny, self._splits, epochs=self._work.quick, device=self._work.device)
            line["accuracy"] = accuracy
            text += f", {100 * accuracy:.1f} % on the test set after {self._work.quick} epochs (one training)"
        files.append_json_line(self._folder / "progress.jsonl", line)
        self._work.say(text)

    def draw(self, tiny: SyntheticSet) -> None:
        """Renew the picture grid."""
        if tiny.are_images:
            tiny.grid(self._folder / "grid.png")


def quick_accuracy(tiny: SyntheticSet, splits: Splits, *, epochs: int, device: str | None) -> float:
    """Test accuracy of one fresh network after a short training on the set as it is."""
    seed = seeding.derive(tiny.seed, "quick evaluation")
    habit = {name: value for name, value in PROTOCOLS["condensation"].items() if name != "epochs"}
    model = training.train(
        networks.build(tiny.recipe["net"], splits.train, seed=seed),
        tiny.data(),
        epochs=epochs,
        seed=seed,
        targets=tiny.soft,
        device=device,
        **habit,
    )
    return training.accuracy(model, splits.test, device=device)


def threads_for(splits: Splits) -> Any:
    """One CPU thread for small samples, which have no work for more."""
    data = splits.train
    small = not isinstance(data, ImageData) or min(data.images.shape[2:]) < _SMALL_IMAGE
    return runtime.one_thread() if small else nullcontext()


def _description(request: Request, splits: Splits) -> dict[str, Any]:
    data = {"name": splits.name, "fingerprint": splits.train.fingerprint, "train": len(splits.train)}
    return {"kind": KIND, "format": 1, "request": request.as_dict(), "data": data, "versions": runtime.versions()}


def read_run(folder: Path) -> dict[str, Any]:
    """What `condense.json` says of a run.

    Raises:
        ValueError: when the folder is no run of condensation.
    """
    if not (folder / "condense.json").is_file():
        raise ValueError(f"expected a folder of `lcmat condense`, but {folder} has no condense.json")
    meta = files.read_json(folder / "condense.json")
    if not isinstance(meta, dict) or meta.get("kind") != KIND or meta.get("format") != 1:
        raise ValueError(f"{folder / 'condense.json'} does not describe a condensation of this version of lcmat")
    return meta


def _open_folder(request: Request, splits: Splits, folder: Path, work: Work) -> None:
    """Begin a run, or make sure that the one in the folder is this one and is meant to go on."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"expected a folder for the run, but {folder} is a file; name another with --out")
    if not (folder / "condense.json").exists():
        if folder.is_dir() and any(not path.match("*.part") for path in folder.iterdir()):
            raise ValueError(f"the folder {folder} is not empty and no condensation; name another with --out")
        files.write_json(folder / "condense.json", {**_description(request, splits), "complete": False})
        return
    found = read_run(folder)
    asked = json.loads(json.dumps(request.as_dict()))
    for name, value in asked.items():
        if found["request"].get(name) != value:
            raise ValueError(
                f"{folder} holds another condensation: its {name} is {found['request'].get(name)!r}, asked for is "
                f"{value!r}; name another folder with --out"
            )
    if not work.resume:
        state = "finished" if found.get("complete") else "interrupted"
        raise ValueError(
            f"{folder} holds this condensation, {state}; give --resume to go on, or name another folder with --out"
        )


def _leave(folder: Path) -> None:
    """Take back a folder that a run was refused in, so that a corrected command may have it."""
    if not (folder / "checkpoint").exists():
        (folder / "condense.json").unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


def with_net(request: Request, splits: Splits) -> Request:
    """The request with a network that suits the data."""
    return request if request.net else replace(request, net=default_net(splits.train))
