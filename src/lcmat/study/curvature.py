"""The curvature of what runs keep, at the parameters of a run's own proxy."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from torch import nn

from lcmat import runtime
from lcmat.landscape import CurvatureReport, curvature
from lcmat.study.comparison import check_comparable, name_runs
from lcmat.study.pipeline import Machine, read_again
from lcmat.study.store import Run
from lcmat.training import log_of, train
from lcmat.types import Data

DEFAULT_RHO = 0.1
# Numbers in a sample below which a network has no work for more than one thread.
_SMALL = 1024


def measure_curvature(
    runs: Sequence[Run],
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
    """The curvature report of all subsets of these runs, at the parameters of the first run's proxy.

    Args:
        runs: on the same data.
        machine: to work on.
        parameters: 'head', 'all' or both.
        rho: ρ; None takes the run's own, where its method has one.
        samples: of T for the whole network.
        resolution: points along each axis of the plane.
        weighted: use the subsets' weights.
        pictures: whether to evaluate the losses over a plane.
        seed: of every draw.
    """
    check_comparable(runs)
    splits = read_again(runs[0])
    small = splits.train.inputs[0].numel() < _SMALL
    with runtime.one_thread() if small else nullcontext():
        model = proxy_of(runs[0], splits.train, machine)
        return curvature(
            model,
            splits,
            {name: run.subsets() for name, run in name_runs(runs).items()},
            parameters=parameters,
            rho=_rho_of(runs) if rho is None else rho,
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


def write_curvature(report: CurvatureReport, runs: Sequence[Run], page: Path) -> Path:
    """Write the page and, in a folder of its name, the data behind it; the folder."""
    methods = ", ".join(name_runs(runs))
    report.save_html(page, title=f"Curvature: {methods} on {runs[0].data['name']}")
    return report.save(page.with_suffix(""))


def _rho_of(runs: Sequence[Run]) -> float:
    """The ρ that the first of these runs selected with, if it is above 0."""
    for run in runs:
        rho = run.settings.options.get("rho")
        if isinstance(rho, float) and rho > 0:
            return rho
    return DEFAULT_RHO
