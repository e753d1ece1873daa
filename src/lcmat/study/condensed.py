"""Finished condensations: opened, joined from shards, and evaluated."""

from collections.abc import Callable, Sequence
from pathlib import Path

from lcmat import files
from lcmat.condensation.plan import default_net
from lcmat.data import load
from lcmat.evaluation import Report, evaluate
from lcmat.study.commands import condense_command, evaluate_command, join_command
from lcmat.study.comparison import Protocol
from lcmat.study.condensing import read_run, threads_for
from lcmat.types import Splits, SyntheticSet


def open_condensed(folder: str | Path) -> SyntheticSet:
    """The set of a finished run folder, or of a folder that holds nothing but a set.

    Raises:
        ValueError: when the folder holds none, or one that was interrupted.
    """
    folder = Path(folder)
    if (folder / "synthetic.json").is_file():
        return SyntheticSet.load(folder)
    if not read_run(folder).get("complete"):
        raise ValueError(f"the run in {folder} was interrupted; give its `lcmat condense` again with --resume")
    return SyntheticSet.load(folder / "synthetic")


def holds_condensed(folder: str | Path) -> bool:
    """Whether a folder is one of condensation."""
    return any((Path(folder) / name).is_file() for name in ("condense.json", "synthetic.json"))


def data_of(folder: Path) -> Splits:
    """The data that a run folder was condensed from."""
    request = read_run(folder)["request"]
    return load(request["source"], quiet=True, **request["reading"])


def evaluate_condensed(
    folders: Sequence[Path],
    out: Path,
    *,
    seeds: int,
    nets: Sequence[str] = (),
    epochs: int | None = None,
    full: bool = False,
    oracle: bool = False,
    reach: float | None = None,
    steps: int | None = None,
    augment: bool | None = None,
    device: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> tuple[Report, Path]:
    """Train fresh networks on the sets of run folders and on random sets beside them; the report and its page."""
    splits = data_of(folders[0])
    sets = {folder: open_condensed(folder) for folder in folders}
    methods = [tiny.method for tiny in sets.values()]
    named: dict[str, list[SyntheticSet]] = {}
    for folder, tiny in sets.items():
        alike = [other for other in sets.values() if (other.method, len(other)) == (tiny.method, len(tiny))]
        named.setdefault(tiny.method if len(alike) == 1 else f"{tiny.method} ({folder})", []).append(tiny)
    with threads_for(splits):
        report = evaluate(
            splits,
            named,
            nets=list(nets) or [default_net(splits.train)],
            seeds=range(seeds),
            epochs=epochs,
            full=full,
            oracle=oracle,
            reach=reach,
            steps=steps,
            augment=augment,
            records=out / "records.jsonl",
            device=device,
            progress=progress,
        )
    title = f"{', '.join(dict.fromkeys(methods))} on {splits.name}"
    epochs = 1 if steps is not None else int(report.records[0]["settings"]["epochs"])
    asked = Protocol(tuple(nets), seeds, epochs, full=full, oracle=oracle, reach=reach, steps=steps, augment=augment)
    made = [command for folder, tiny in sets.items() for command in _commands(folder, tiny)]
    again = [*made, evaluate_command(folders, asked, out)]
    return report, report.save_html(out / "report.html", title=title, commands=again)


def _commands(folder: Path, tiny: SyntheticSet) -> list[str]:
    """What makes a folder's set again; nothing for one that `lcmat condense` did not make."""
    if not (folder / "condense.json").is_file():
        return []
    meta = read_run(folder)
    if joined := [Path(path) for path in meta.get("joined", ())]:
        shards = [command for shard in joined if shard.is_dir() for command in _commands(shard, open_condensed(shard))]
        return [*shards, join_command(joined, folder)]
    return [condense_command(folder, meta["request"], max(1, int(tiny.recipe.get("steps", 1))))]


def join_runs(folders: Sequence[Path], out: Path) -> SyntheticSet:
    """One run folder from those of shards of the classes.

    Raises:
        ValueError: when they do not belong together, or `out` exists.
    """
    if out.exists():
        raise ValueError(f"{out} exists already; name another folder with --out")
    tiny = SyntheticSet.join([open_condensed(folder) for folder in folders])
    first = read_run(folders[0])
    tiny.save(out / "synthetic")
    if tiny.are_images:
        tiny.grid(out / "grid.png")
    request = {**first["request"], "classes": []}
    files.write_json(out / "condense.json", {**first, "request": request, "joined": [str(path) for path in folders]})
    return tiny
