"""The run folder: one place that knows what lies where in it.

    RUN/run.json                 settings, data, seconds, versions; whether the run is complete
    RUN/subsets/BUDGET/          one Subset for each budget, such as subsets/0.01
    RUN/repeats/SEED/BUDGET/     the same budgets chosen again with another seed, for independent evaluations
    RUN/proxies/                 checkpoints of the proxy networks, by seed
    RUN/records.jsonl            one line for each training of an evaluation
    RUN/report.html              the evaluation's page

`run.json` is written first and marked complete last, so that a killed run is known as such and goes on from what is
there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lcmat import files, runtime
from lcmat.study.settings import Settings
from lcmat.types import Splits, Subset

KIND = "lcmat run"
FORMAT = 1
DATA_KEYS = {"name", "fingerprint", "test_fingerprint", "train", "test", "shape", "class_names"}
STAGES = ("load", "train", "extract", "select")


@dataclass(frozen=True)
class Run:
    """One run folder.

    Attributes:
        path: the folder.
        settings: that decide the result.
        data: name, fingerprint, sizes and class names of the data.
        seconds: of the stages load, train, extract and select, as far as they are done.
        peak_memory_mb: largest resident size of the process, in 10⁶ bytes.
        training: the resolved settings of the proxy's training.
        versions: of lcmat and what it ran on.
        complete: whether every subset is there.
    """

    path: Path
    settings: Settings
    data: Mapping[str, Any]
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_memory_mb: float = 0.0
    training: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False

    @classmethod
    def begin(cls, path: str | Path, settings: Settings, splits: Splits, load_seconds: float = 0.0) -> "Run":
        """Start a run in a new or empty folder, or go on with the run of the same settings and data that is there.

        Raises:
            ValueError: when the folder holds anything else; nothing in it is touched.
        """
        path = Path(path)
        data = _describe(splits)
        check_free(path)
        if (path / "run.json").exists():
            run = cls._read(path)
            _check_same(run, settings, data)
            return run
        return cls(path, settings, data, seconds={"load": load_seconds}, versions=runtime.versions()).save()

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """A complete run.

        Raises:
            ValueError: when the folder is no run, or one that was interrupted.
        """
        run = cls._read(Path(path))
        if not run.complete:
            raise ValueError(f"the run in {path} was interrupted; give its `lcmat select` again to finish it")
        if not run.subsets():
            raise ValueError(
                f"subsets are missing from the run in {path}; give its `lcmat select` again to restore them"
            )
        return run

    @classmethod
    def _read(cls, path: Path) -> "Run":
        if not (path / "run.json").is_file():
            raise ValueError(f"expected a run folder, as `lcmat select` writes it, but {path} has no run.json")
        meta = files.read_json(path / "run.json")
        if not isinstance(meta, dict) or meta.pop("kind", None) != KIND:
            raise ValueError(f"{path / 'run.json'} does not describe a run of lcmat")
        if meta.pop("format", None) != FORMAT:
            raise ValueError(f"{path} holds a run of a format that this version of lcmat does not know; update lcmat")
        shown = meta.get("data")
        seconds = meta.get("seconds")
        timed = isinstance(seconds, dict) and all(isinstance(value, int | float) for value in seconds.values())
        if not isinstance(shown, dict) or not set(shown) >= DATA_KEYS or not timed:
            raise ValueError(f"{path / 'run.json'} does not describe a whole run: its data or seconds are incomplete")
        try:
            return cls(path, **{**meta, "settings": Settings.from_dict(meta["settings"])})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path / 'run.json'} does not describe a whole run: {error}") from None

    def save(self) -> "Run":
        """Write `run.json`, atomically."""
        names = ("data", "seconds", "peak_memory_mb", "training", "versions", "complete")
        meta = {name: getattr(self, name) for name in names}
        files.write_json(
            self.path / "run.json", {"kind": KIND, "format": FORMAT, "settings": self.settings.as_dict(), **meta}
        )
        return self

    def update(self, **changes: Any) -> "Run":
        """The run with some attributes changed, written."""
        return replace(self, **changes).save()

    def subset_folders(self, seed: int | None = None) -> list[Path]:
        """Where the subset of each budget lies, ascending; those of another seed are repeats."""
        own = seed is None or seed == self.settings.seed
        parent = self.path / "subsets" if own else self.path / "repeats" / str(seed)
        return [parent / budget_name(self.settings.budget, amount) for amount in self.settings.amounts]

    def subsets(self, seed: int | None = None) -> list[Subset]:
        """The subset of each budget; empty when one of them is not there yet.

        Raises:
            ValueError: when one is damaged.
        """
        folders = self.subset_folders(seed)
        if not all((folder / "subset.json").exists() for folder in folders):
            return []
        return [Subset.load(folder) for folder in folders]

    def save_subsets(self, subsets: Sequence[Subset], seed: int | None = None) -> None:
        """Write one subset for each budget."""
        for folder, subset in zip(self.subset_folders(seed), subsets, strict=True):
            subset.save(folder)

    def proxy_checkpoint(self, seed: int) -> Path:
        """Where the proxy of this seed is kept while it trains and after."""
        return self.path / "proxies" / f"seed-{seed}"

    def summary(self) -> dict[str, Any]:
        """What `lcmat select --json` prints: plain values for one budget, lists for several."""
        subsets = self.subsets()
        counts = [len(subset) for subset in subsets]
        per_class = [list(subset.per_class) for subset in subsets]
        several = len(subsets) > 1
        return {
            "run": str(self.path),
            "method": self.settings.method,
            "options": dict(self.settings.options),
            "n": self.data["train"],
            "count": counts if several else counts[0],
            "per_class": per_class if several else per_class[0],
            "seconds": {stage: round(self.seconds.get(stage, 0.0), 3) for stage in STAGES},
            "peak_memory_mb": round(self.peak_memory_mb, 1),
        }


def check_free(path: Path) -> None:
    """Refuse a path that holds something other than a run."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"expected a folder for the run, but {path} is a file; name another with --out")
    # A kill in the middle of the first write leaves a `.part` file, which is nobody's.
    if path.is_dir() and not (path / "run.json").exists() and any(not name.match("*.part") for name in path.iterdir()):
        raise ValueError(f"the folder {path} is not empty and no run of lcmat; name another with --out")


def budget_name(budget: str, amount: float) -> str:
    """The folder name of a budget: '0.01' for a fraction, 'count-500', 'coverage-0.9'."""
    text = f"{amount:.12g}"
    return text if budget == "fraction" else f"{budget}-{text}"


def _describe(splits: Splits) -> dict[str, Any]:
    return {
        "name": splits.name,
        "fingerprint": splits.train.fingerprint,
        "test_fingerprint": splits.test.fingerprint,
        "train": len(splits.train),
        "test": len(splits.test),
        "shape": list(splits.train.inputs.shape[1:]),
        "class_names": list(splits.train.class_names),
    }


def _check_same(run: Run, settings: Settings, data: Mapping[str, Any]) -> None:
    # A tuple among the options is a list once it has been through JSON.
    found, asked = (json.loads(json.dumps(item.as_dict())) for item in (run.settings, settings))
    for name, value in asked.items():
        if found[name] != value:
            raise ValueError(
                f"{run.path} holds another run: its {name} is {found[name]!r}, asked for is {value!r}; "
                "name another folder with --out"
            )
    if any(run.data[part] != data[part] for part in ("fingerprint", "test_fingerprint")):
        raise ValueError(
            f"{run.path} holds a run on other data: what {settings.source} holds has changed since; "
            "name another folder with --out"
        )
