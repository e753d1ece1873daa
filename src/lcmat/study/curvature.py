"""The curvature of what runs keep or made, at the parameters of a run's own proxy."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from torch import nn

from lcmat import runtime
from lcmat.condensation.plan import default_net
from lcmat.landscape import CurvatureReport, curvature
from lcmat.study.comparison import check_comparable, name_runs
from lcmat.study.condensed import data_of, holds_condensed, open_condensed
from lcmat.study.condensing import read_run
from lcmat.study.pipeline import Machine, read_again
from lcmat.study.settings import Settings
from lcmat.study.store import Run
from lcmat.training import log_of, train
from lcmat.types import Data, Splits, Subset, SyntheticSet

DEFAULT_RHO = 0.1
# Numbers in a sample below which a network has no work for more than one thread.
_SMALL = 1024

Sets: TypeAlias = Mapping[str, Sequence[Subset | SyntheticSet]]


@dataclass(frozen=True, eq=False)
class Opened:
    """Runs of selection and of condensation on the same data, in the order in which they were named.

    Attributes:
        folders: of all of them.
        chosen: those of selection.
        condensed: the sets of those of condensation, by folder.
    """

    folders: tuple[Path, ...]
    chosen: tuple[Run, ...]
    condensed: Mapping[Path, SyntheticSet]

    @property
    def data_name(self) -> str:
        """What the runs were made from."""
        name: str = self.chosen[0].data["name"] if self.chosen else read_run(self.folders[0])["data"]["name"]
        return name

    def sets(self) -> Sets:
        """What is compared, by method; by method and folder where several runs share one."""
        methods = [tiny.method for tiny in self.condensed.values()]
        return {
            **{name: run.subsets() for name, run in name_runs(self.chosen).items()},
            **{
                tiny.method if methods.count(tiny.method) == 1 else f"{tiny.method} ({folder})": [tiny]
                for folder, tiny in self.condensed.items()
            },
        }


def open_runs(folders: Sequence[Path]) -> Opened:
    """The runs in these folders.

    Raises:
        ValueError: for a folder that holds no finished run, one given twice, and runs on different data.
    """
    condensed = {folder: open_condensed(folder) for folder in folders if holds_condensed(folder)}
    chosen = tuple(Run.open(folder) for folder in folders if folder not in condensed)
    check_comparable(chosen)
    if len({folder.resolve() for folder in condensed}) < len(folders) - len(chosen):
        raise ValueError("a run of condensation is given twice")
    prints = {run.data["fingerprint"] for run in chosen} | {tiny.fingerprint for tiny in condensed.values()}
    if len(prints - {""}) > 1:
        raise ValueError("these runs were made from different data; look at them one by one")
    if not chosen:
        read_run(folders[0])  # a set by itself does not say where its data is
    return Opened(tuple(folders), chosen, condensed)


def measure_curvature(
    opened: Opened,
    machine: Machine,
    *,
    parameters: Sequence[str],
    rho: float | None = None,
    samples: int | None = None,
    resolution: int | None = None,
    weighted: bool = False,
    pictures: bool = True,
    seed: int = 0,
) -> CurvatureReport:
    """The curvature report of all sets of these runs, at the parameters of the first selection's proxy.

    Runs of condensation have none: where there is nothing else, the network that the first one names is trained as a
    proxy is.

    Args:
        opened: the runs.
        machine: to work on.
        parameters: 'head', 'all' or both.
        rho: ρ; None takes that of a selection, where its method has one.
        samples: of T for the whole network.
        resolution: points along each axis of the plane.
        weighted: use the subsets' weights.
        pictures: whether to evaluate the losses over a plane.
        seed: of every draw.
    """
    splits = read_again(opened.chosen[0]) if opened.chosen else data_of(opened.folders[0])
    small = splits.train.inputs[0].numel() < _SMALL
    with runtime.one_thread() if small else nullcontext():
        return curvature(
            proxy_of(opened.chosen[0], splits.train, machine) if opened.chosen else _stand_in(opened, splits, machine),
            splits,
            opened.sets(),
            parameters=parameters,
            rho=_rho_of(opened) if rho is None else rho,
            samples=samples,
            weighted=weighted,
            pictures=pictures,
            resolution=resolution,
            seed=seed,
            device=machine.device,
            progress=machine.progress,
        )


def proxy_of(run: Run, data: Data, machine: Machine) -> nn.Module:
    """The network that judged the samples of a run: from its checkpoint where there is one, else trained again.

    A run that looked at several states of the proxy gives the last of them.
    """
    settings = run.settings
    model = train(
        settings.net,
        data,
        epochs=settings.epochs,
        seed=settings.seed,
        snapshots=settings.points,
        record=settings.needs_record,
        checkpoint=run.proxy_checkpoint(settings.seed),
        device=machine.device,
        progress=machine.follow(f"training the proxy, seed {settings.seed}"),
    )
    log = log_of(model)
    if settings.points and log is not None:
        model.load_state_dict(log.snapshots[settings.points[-1]])
    return model


def _stand_in(opened: Opened, splits: Splits, machine: Machine) -> nn.Module:
    """The network of the first condensation, trained with the settings of a proxy."""
    request = read_run(opened.folders[0])["request"]
    net = request["net"] or default_net(splits.train)
    return train(
        net,
        splits.train,
        epochs=Settings.epochs,
        seed=request["seed"],
        device=machine.device,
        progress=machine.follow(f"training {net}, seed {request['seed']}"),
    )


def write_curvature(report: CurvatureReport, opened: Opened, page: Path, commands: Sequence[str] = ()) -> Path:
    """Write the page and, in a folder of its name, the data behind it; the folder."""
    title = f"Curvature: {', '.join(opened.sets())} on {opened.data_name}"
    report.save_html(page, title=title, commands=commands)
    return report.save(page.with_suffix(""))


def _rho_of(opened: Opened) -> float:
    """The ρ that the first of these runs selected with, if it is above 0; a condenser's is no radius but a weight."""
    for run in opened.chosen:
        rho = run.settings.options.get("rho")
        if isinstance(rho, float) and rho > 0:
            return rho
    return DEFAULT_RHO
