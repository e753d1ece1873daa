"""One measurement after another, for every reduced set and every choice of parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor, nn

from lcmat.landscape.diagonal import EVERYTHING, DiagonalGap, diagonal_gaps, sorted_variances
from lcmat.landscape.eigen import Spectrum, spectrum_of
from lcmat.landscape.gap import Gap
from lcmat.landscape.generalisation import Generalisation, generalise
from lcmat.landscape.head_gap import HeadGap
from lcmat.landscape.network_gap import NetworkGap
from lcmat.landscape.result import ALL, HEAD, Key, Terms
from lcmat.landscape.samples import Pool, samples_of_full
from lcmat.landscape.sharpness import measure_sharpness
from lcmat.landscape.surface import Plane, Slice, Surface
from lcmat.linear_head import Factors, factors
from lcmat.types import Signals

# (stage, steps done, steps in all)
Progress: TypeAlias = Callable[[str, int, int], None]

_LINE_POINTS = 51
# Of the search for the sharpness: an evaluation for the whole network takes a pass over its samples.
_STEPS = {HEAD: 40, ALL: 12}
_RESTARTS = {HEAD: 3, ALL: 1}


@dataclass(frozen=True)
class Settings:
    """What every measurement needs to know."""

    rho: float
    radii: tuple[float, ...]
    seed: int
    batch_size: int | None
    device: torch.device
    progress: Progress | None

    def follow(self, stage: str) -> Callable[[int, int], None] | None:
        """A callback for one stage."""
        progress = self.progress
        return None if progress is None else lambda done, total: progress(stage, done, total)


def all_terms(
    model: nn.Module,
    signals: Signals,
    pool: Pool,
    partial: Pool,
    keys: Sequence[Key],
    chosen: Sequence[str],
    settings: Settings,
) -> tuple[list[Terms], dict[Key, float]]:
    """The terms of every set, and the largest L_abs found in the ball of the whole network."""
    rows, highest = [], {}
    for scope in chosen:
        of = pool if scope == HEAD else partial
        for key in keys:
            gap = _gap(model, signals, of, of.coefficients(key.label), scope, settings)
            row = _terms(gap, scope, key, of, _gap(model, signals, of, of.full, scope, settings), settings)
            rows.append(row)
            if scope == ALL:
                highest[key] = row.loss_gap + row.rho * row.sharpness[row.rho]
    return rows, highest


def _gap(model: nn.Module, signals: Signals, pool: Pool, coefficients: Tensor, scope: str, settings: Settings) -> Gap:
    if scope == HEAD:
        return HeadGap.of(signals, pool.targets, coefficients)
    return NetworkGap(model, pool.data, pool.targets, coefficients, settings.device, settings.batch_size)


def _terms(gap: Gap, scope: str, key: Key, pool: Pool, full: Gap, settings: Settings) -> Terms:
    centre = torch.zeros(gap.size, dtype=gap.dtype, device=gap.device)
    difference, gradient = gap.value_and_gradient(centre)
    loss_full = full.value(centre)
    where = "last layer" if scope == HEAD else "whole network"
    spectrum = spectrum_of(gap, seed=settings.seed, progress=settings.follow(f"eigenvalues, {where}, {key.label}"))
    sharpness = _sharpness(gap, scope, spectrum, settings, settings.follow(f"sharpness, {where}, {key.label}"))
    return Terms(
        key,
        scope,
        gap.size,
        samples_of_full(pool),
        loss_full,
        loss_full - difference,
        float(gradient.double().norm()),
        replace(spectrum, vectors=spectrum.vectors[:0]),
        settings.rho,
        sharpness,
    )


def _sharpness(
    gap: Gap, scope: str, spectrum: Spectrum, settings: Settings, follow: Callable[[int, int], None] | None
) -> dict[float, float]:
    """The sharpness at every radius, each search starting from what the one before it found, too."""
    found: dict[float, float] = {}
    starts = [spectrum.vectors]
    for done, rho in enumerate(settings.radii, 1):
        result = measure_sharpness(
            gap, rho, starts=starts, restarts=_RESTARTS[scope], steps=_STEPS[scope], seed=settings.seed
        )
        found[rho] = result.value
        starts = [spectrum.vectors, result.best]
        if follow is not None:
            follow(done, len(settings.radii))
    return found


def diagonals_and_variances(
    signals: Signals, pool: Pool, keys: Sequence[Key]
) -> tuple[dict[Key, tuple[DiagonalGap, ...]], dict[str, Tensor]]:
    """Where the Hessian diagonals of T and each set differ most, and Var(λ_k) over all of T and each class, sorted."""
    head = _on_processor(factors(signals))
    names = pool.data.class_names
    gaps = {
        key: tuple(diagonal_gaps(head, pool.full, pool.reduced[key.label], pool.data.labels, names)) for key in keys
    }
    return gaps, dict(_variances(head, pool))


def _variances(head: Factors, pool: Pool) -> Iterator[tuple[str, Tensor]]:
    yield EVERYTHING, sorted_variances(head, pool.full)[0]
    for index, name in enumerate(pool.data.class_names):
        inside = torch.where(pool.data.labels == index, pool.full, 0.0)
        if float(inside.sum()) > 0:
            yield name, sorted_variances(head, inside)[0]


def _on_processor(head: Factors) -> Factors:
    return Factors(head.residuals.cpu(), head.inputs.cpu(), head.spreads.cpu())


def theorems(
    model: nn.Module, pool: Pool, test: Pool, n: int, highest: Mapping[Key, float], settings: Settings
) -> tuple[Generalisation, ...]:
    """The terms of the paper's Theorem 1 for every reduced set."""
    follow = settings.follow("generalisation")
    found = []
    for key, value in highest.items():
        part = generalise(
            model,
            pool,
            test,
            key.label,
            n=n,
            rho=settings.rho,
            highest=value,
            device=settings.device,
            seed=settings.seed,
        )
        found.append(part)
        if follow is not None:
            follow(len(found), len(highest))
    return tuple(found)


def draw_pictures(
    model: nn.Module, pool: Pool, reach: float, resolution: int, lines: int, settings: Settings
) -> tuple[Plane, tuple[Slice, ...]]:
    """The losses over a plane, and along one direction for each of several seeds."""
    # A picture does not show the digits that TF32 drops.
    precision = "tf32" if settings.device.type == "cuda" else "float32"
    surface = Surface(model, pool, settings.device, precision=precision, batch_size=settings.batch_size)
    plane = surface.plane(settings.seed, reach=reach, resolution=resolution, progress=settings.follow("loss surface"))
    slices = tuple(
        surface.line(settings.seed + number, reach=reach, resolution=_LINE_POINTS) for number in range(lines)
    )
    return plane, slices
