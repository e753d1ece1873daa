"""`lcmat.curvature`: everything about the losses of T and S around one parameter point."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from lcmat import runtime
from lcmat.landscape.measure import (
    Progress,
    Settings,
    all_terms,
    diagonals_and_variances,
    draw_pictures,
    theorems,
)
from lcmat.landscape.network_gap import check_evaluation_mode
from lcmat.landscape.result import ALL, HEAD, PARAMETERS, CurvatureReport, Key, Terms
from lcmat.landscape.samples import Reduced, make_pool, samples_of_full
from lcmat.landscape.surface import positions
from lcmat.selection import random_like
from lcmat.signals import extract
from lcmat.training import precision as number_formats
from lcmat.types import Data, Splits, Subset

RADII = (0.01, 0.05, 0.1, 0.5)
# Pixels or features of T to go through the whole network at once: seconds for each product on a CPU.
_SAMPLE_NUMBERS = {"cpu": 2**20, "cuda": 2**40}
_MOST_SAMPLES = 5000
_RESOLUTION = {"cpu": 25, "cuda": 51}


def curvature(
    model: nn.Module,
    data: Splits | Data,
    sets: Reduced | Mapping[str, Reduced | Sequence[Reduced]],
    *,
    parameters: str | Sequence[str] = HEAD,
    rho: float = 0.1,
    radii: Sequence[float] = RADII,
    samples: int | None = None,
    weighted: bool = False,
    baseline: bool = True,
    pictures: bool = True,
    resolution: int | None = None,
    reach: float = 1.0,
    lines: int = 3,
    seed: int = 0,
    head: str | None = None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
) -> CurvatureReport:
    """The quantities that loss-curvature matching argues with, at the model's parameters θ.

    With h(ε) = L(T; θ + ε) − L(S; θ + ε) and L_abs = |h|, for every reduced set S: the sharpness
    max_{‖ε‖ ≤ ρ} (L_abs(θ + ε) − L_abs(θ))/ρ from below, its second-order bound ‖∇h‖ + (ρ/2) max|λ(∇²h)|, the
    eigenvalues behind it, its diagonal form in the last layer, and pictures of the losses.

    Args:
        model: in evaluation mode, as `lcmat.train` returns it; it is not changed.
        data: T; with Splits the test data stand for the population of the paper's Theorem 1.
        sets: a Subset, a SyntheticSet or data of the same kind; or several by name, of one size or several.
        parameters: 'head' for the last layer, 'all' for the whole network, or both.
        rho: ρ, the radius of the ball.
        radii: further radii at which the sharpness is measured.
        samples: of T that stand for it where the whole network is looked at; None takes 5,000, fewer on a CPU. The last
            layer is always looked at with all of T.
        weighted: use the weights of subsets whose method defines some; without it all samples of S count the same, as
            in `lcmat.evaluate`.
        baseline: add a random subset with the same class counts as each reduced set.
        pictures: evaluate the losses over a plane and along lines.
        resolution: points along each axis, odd; None takes 51, or 25 on a CPU.
        reach: how far to go along the filter-normalised directions.
        lines: slices through θ, along a direction each.
        seed: of every draw.
        head: name of the last linear layer, where it is not the last one that the model defines.
        batch_size: rows at a time in the whole network; None fits the device; changes results in rounding only.
        device: where to compute; None takes the first CUDA device, else the CPU.
        progress: called with (stage, steps done, steps in all).

    Raises:
        ValueError: for a model with dropout or batch normalisation in training mode, a set that does not belong to the
            data, or an option outside its range.

    Example:
        >>> import lcmat
        >>> data = lcmat.load("digits")
        >>> model = lcmat.train("mlp:width=16", data.train, epochs=2, seed=0)
        >>> subset = lcmat.select(lcmat.extract(model, data.train), "lcmat-s", fraction=0.1)
        >>> found = lcmat.curvature(model, data.train, {"lcmat-s": subset}, pictures=False).find("lcmat-s")
        >>> found.bound() == found.gradient + 0.1 / 2 * found.spectrum.magnitude
        True
    """
    check_evaluation_mode(model)
    chosen = _check_parameters(parameters)
    place = runtime.pick_device(device)
    every_radius = _check_radii(rho, radii)
    points = (_RESOLUTION[place.type] if resolution is None else resolution) if pictures else 0
    if pictures:
        positions(reach, points)  # a wrong one is refused before anything is computed
    train, test = (data.train, data.test) if isinstance(data, Splits) else (data, None)
    named = _name(sets, train, baseline, seed)
    settings = Settings(rho, every_radius, seed, batch_size, place, progress)
    by_label = {key.label: item for key, item in named.items()}
    pool = make_pool(train, by_label, weighted=weighted)
    samples = _default_samples(train, place) if samples is None else samples
    partial = make_pool(train, by_label, samples=samples, weighted=weighted, seed=seed)
    with number_formats.float32_products("float32", place):
        signals = extract(model, pool.data, head=head, device=place)
        terms, highest = all_terms(model, signals, pool, partial, list(named), chosen, settings)
        diagonals, variances = diagonals_and_variances(signals, pool, list(named))
        unseen = None if test is None or ALL not in chosen else make_pool(test, {}, samples=samples, seed=seed)
        theorem = () if unseen is None else theorems(model, partial, unseen, len(train), highest, settings)
    plane, slices = draw_pictures(model, partial, reach, points, lines, settings) if pictures else (None, ())
    looked = samples_of_full(partial) if ALL in chosen or pictures else None
    protocol = {
        "data": data.name if isinstance(data, Splits) else f"{len(train):,} samples",
        "samples of T": len(train),
        "samples of T for the whole network": looked,
        "ρ": rho,
        "weights": "of the method, where it defines some" if weighted else "all samples of S count the same",
        "seed": seed,
        "points of the plane": f"{points} × {points}" if pictures else None,
        **runtime.versions(),
    }
    notes = _notes(len(train), looked, chosen, terms)
    return CurvatureReport(tuple(terms), diagonals, variances, theorem, plane, slices, protocol, notes)


def _check_parameters(parameters: str | Sequence[str]) -> tuple[str, ...]:
    chosen = (parameters,) if isinstance(parameters, str) else tuple(dict.fromkeys(parameters))
    if not chosen or not set(chosen) <= set(PARAMETERS):
        raise ValueError(f"expected parameters of 'head', 'all' or both, got {parameters!r}")
    return chosen


def _check_radii(rho: float, radii: Sequence[float]) -> tuple[float, ...]:
    every = tuple(sorted({rho, *radii}))
    if not all(0 < radius < float("inf") for radius in every):
        raise ValueError(f"expected rho and radii above 0, got {rho} and {list(radii)}")
    return every


def _default_samples(data: Data, device: torch.device) -> int:
    return max(1, min(_MOST_SAMPLES, _SAMPLE_NUMBERS[device.type] // data.inputs[0].numel()))


def _name(
    sets: Reduced | Mapping[str, Reduced | Sequence[Reduced]], data: Data, baseline: bool, seed: int
) -> dict[Key, Reduced]:
    """Every reduced set under its name and size, with a random one beside each size."""
    if not isinstance(sets, Mapping):
        sets = {getattr(sets, "method", "reduced set"): sets}
    named: dict[Key, Reduced] = {}
    for name, value in sets.items():
        # A Subset is a sequence too, of indices.
        items: Sequence[Reduced] = value if isinstance(value, list | tuple) else [value]  # type: ignore[list-item]
        for item in items:
            key = Key(name, len(item), len(item) / len(data))
            if key in named:
                raise ValueError(f"expected one set of each size under a name, got two of {len(item)} for {name!r}")
            named[key] = item
    if not named:
        raise ValueError("expected at least one reduced set, got none")
    if baseline and "uniform" not in sets:
        for key, item in list(named.items()):
            random = Key("uniform", key.size, key.fraction)
            counts = _class_counts(item, data)
            if random not in named and all(a <= b for a, b in zip(counts, _class_counts(data, data), strict=True)):
                named[random] = random_like(data.labels, counts, len(data), seed)
    return named


def _class_counts(item: Reduced, data: Data) -> tuple[int, ...]:
    labels = item.apply(data).labels if isinstance(item, Subset) else item.labels
    return tuple(torch.bincount(labels, minlength=len(data.class_names)).tolist())


def _notes(n: int, looked: int | None, chosen: Sequence[str], terms: Sequence[Terms]) -> tuple[str, ...]:
    notes = []
    if looked is not None and looked < n:
        notes.append(
            f"Where the whole network is looked at, {looked:,} samples drawn from the {n:,} of T stand for it; S is "
            "whole. In a bound made from a draw, the distance between T and the draw is included."
        )
    if ALL in chosen:
        notes.append(
            "Networks with ReLU have kinks that no Hessian sees: the measured sharpness may exceed the bound for this "
            "reason alone."
        )
    if any(row.key.name == "uniform" for row in terms):
        notes.append("'uniform' is one random draw; another draw gives other numbers.")
    unsure = dict.fromkeys(row.key.label for row in terms if not row.spectrum.converged)
    if unsure:
        notes.append(f"Not all eigenvalues of {', '.join(unsure)} came within the tolerance; see their residuals.")
    return tuple(notes)
