"""Does a smaller bound go with a higher accuracy? The cells of that question, each recorded as soon as it is measured.

A cell is a proxy network, a method and a fraction: the two terms of the bound and the ends of the spectrum of
H_T − H_S, for the last layer and for the whole network, and the test accuracy of fresh networks trained on the subset.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from lcmat import files, runtime
from lcmat.landscape.eigen import Spectrum, lanczos, spectrum_of
from lcmat.landscape.gap import Gap
from lcmat.landscape.head_gap import HeadGap
from lcmat.landscape.network_gap import NetworkGap
from lcmat.landscape.result import ALL, HEAD
from lcmat.landscape.samples import Pool, make_pool, samples_of_full
from lcmat.selection import select
from lcmat.signals import extract
from lcmat.study.locks import locked
from lcmat.training import accuracy, train
from lcmat.training import precision as number_formats
from lcmat.types import Data, Signals, Splits, Subset

SCOPES = (HEAD, ALL)
_HEAD_TOLERANCE, _HEAD_PRODUCTS = 1e-4, 300

Key: TypeAlias = tuple[int, str, float]
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is measured; a folder holds the cells of one plan.

    Attributes:
        data: the source.
        net: of the proxies and of the networks trained on subsets.
        methods: of selection.
        fractions: of the data kept.
        proxies: how many; proxy i is trained, and chooses, under seed i.
        proxy_epochs: of each.
        seeds: trainings on each subset.
        epochs: of each.
        rho: ρ of the curvature term.
        samples: of T that stand for it in the Hessian of the whole network, the same for all cells.
        products: Hessian-vector products for the whole network, at most.
        tolerance: residual over max|λ| at which they stop.
        precision: of the whole network's gradient and of the search for eigenvectors: 'float32', 'tf32', or 'auto',
            which is TF32 on CUDA. The eigenvalues and residuals that are recorded come from products in float32 in any
            case.
        batch_size: rows at a time in the whole network's Hessian. Where one batch holds all, its graph is kept, and
            every further product takes half the time.
    """

    data: str
    net: str
    methods: tuple[str, ...]
    fractions: tuple[float, ...]
    proxies: int
    proxy_epochs: int
    seeds: int
    epochs: int
    rho: float
    samples: int
    products: int
    tolerance: float
    precision: str
    batch_size: int

    def keys(self, proxy: int) -> list[Key]:
        """The cells of one proxy."""
        return [(proxy, method, fraction) for fraction in self.fractions for method in self.methods]


def read_cells(plan: Plan, folder: Path) -> dict[Key, dict[str, Any]]:
    """The recorded cells of the plan in its order, whichever process wrote them."""
    found = {}
    for proxy in range(plan.proxies):
        for cell in files.read_json_lines(_records(folder, proxy)):
            found[cell["proxy"], cell["method"], cell["fraction"]] = cell
    return {key: found[key] for proxy in range(plan.proxies) for key in plan.keys(proxy) if key in found}


def measure_cells(plan: Plan, splits: Splits, folder: Path, proxies: Collection[int], say: Say) -> None:
    """Measure what is missing of some proxies. A proxy that another process is at is left to it."""
    for proxy in proxies:
        with locked(folder / f"proxy-{proxy}.lock") as mine:
            if not mine:
                say(f"proxy {proxy}: another process is at it")
                continue
            done = read_cells(plan, folder)
            missing = [key for key in plan.keys(proxy) if key not in done]
            if not missing:
                continue
            watch = _Watch()
            model = train(
                plan.net, splits.train, epochs=plan.proxy_epochs, seed=proxy, checkpoint=folder / f"proxy-{proxy}"
            )
            say(f"proxy {proxy}: trained, {watch.lap():.2f} s")
            point = Point.of(plan, model, splits.train)
            say(f"proxy {proxy}: features of all samples and the gradient of T, {watch.lap():.2f} s")
            for key in missing:
                cell = _measure(plan, splits, point, key)
                files.append_json_line(_records(folder, proxy), cell)
                say(f"proxy {proxy}, {key[1]}, {key[2]:g}: accuracy {cell['accuracy']:.4f}, {_told(cell['seconds'])}")


def _records(folder: Path, proxy: int) -> Path:
    """One file for each proxy, so that no two processes write to the same."""
    return folder / f"cells-{proxy}.jsonl"


class _Watch:
    """Seconds since the last look; everything that is timed here ends by reading from the device."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def lap(self) -> float:
        """The seconds, and begin anew."""
        before, self._last = self._last, time.perf_counter()
        return self._last - before


def _told(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())


@dataclass(frozen=True, eq=False)
class Point:
    """A proxy with all that depends on it and on T alone.

    Attributes:
        model: the proxy.
        data: T.
        signals: of all of T, on the device.
        gradient: ∇L(T) of the whole network over all of T, float64, `[size]`.
        loss: L(T).
        device: where it is.
        precision: as `Plan.precision`, resolved.
    """

    model: nn.Module
    data: Data
    signals: Signals
    gradient: Tensor
    loss: float
    device: torch.device
    precision: str

    @classmethod
    def of(cls, plan: Plan, model: nn.Module, data: Data) -> "Point":
        """The point that a trained proxy is."""
        device = runtime.pick_device(None)
        precision = number_formats.resolve(plan.precision, device, on_cuda="tf32")
        share = torch.full((len(data),), 1 / len(data), dtype=torch.float64)
        with number_formats.float32_products(precision, device):
            loss, gradient = _at_centre(NetworkGap(model, data, data.labels, share, device))
        return cls(model, data, extract(model, data), gradient, loss, device, precision)


def _measure(plan: Plan, splits: Splits, point: Point, key: Key) -> dict[str, Any]:
    """The terms of one subset, and how well networks train on it."""
    proxy, method, fraction = key
    watch = _Watch()
    subset = select(point.signals, method, fraction=fraction, seed=proxy)
    assert isinstance(subset, Subset)
    seconds = {"choice": watch.lap()}
    head = measure_head(plan, point, subset)
    seconds["last layer"] = watch.lap()
    whole = measure_network(plan, point, subset)
    seconds["whole network"] = watch.lap()
    found = [train_and_test(plan, splits, subset, 1000 * proxy + seed) for seed in range(plan.seeds)]
    seconds["trainings"] = watch.lap()
    terms = {f"{name}_{scope}": value for scope, row in ((HEAD, head), (ALL, whole)) for name, value in row.items()}
    return {
        "proxy": proxy, "method": method, "fraction": fraction, "size": len(subset),
        "accuracy": fmean(found), "accuracies": found, "accuracy_sd": stdev(found) if len(found) > 1 else None,
        **terms, "seconds": {name: round(lap, 3) for name, lap in seconds.items()},
    }  # fmt: skip


def measure_head(plan: Plan, point: Point, subset: Subset) -> dict[str, Any]:
    """Gradient and curvature of the last layer, over all of T."""
    pool = make_pool(point.data, {"S": subset})
    with number_formats.float32_products("float32", point.device):
        gap = HeadGap.of(point.signals, pool.targets, pool.coefficients("S"))
        difference, gradient = _at_centre(gap)
        spectrum = spectrum_of(gap, count=1, tolerance=_HEAD_TOLERANCE, most=_HEAD_PRODUCTS)
    ends, residuals = _ends(spectrum)
    return _row(plan, len(point.data), abs(difference), gradient, ends, residuals, spectrum)


def measure_network(plan: Plan, point: Point, subset: Subset) -> dict[str, Any]:
    """Gradient of the whole network over all of T, and the ends of its spectrum over the plan's samples of T.

    The eigenvectors are searched with rounded products, where the plan asks for it; eigenvalues are vᵀHv and residuals
    ‖Hv − (vᵀHv)v‖ by products in float32, so that rounding can only make them look worse than they might be.
    """
    kept, rounded = subset.apply(point.data), point.precision
    share = torch.full((len(kept),), 1 / len(kept), dtype=torch.float64)
    with number_formats.float32_products(rounded, point.device):
        loss, gradient = _at_centre(NetworkGap(point.model, kept, kept.labels, share, point.device))
    pool = make_pool(point.data, {"S": subset}, samples=plan.samples)
    with number_formats.float32_products("float32", point.device):
        spectrum = _search(plan, point, pool)
        ends, residuals = _ends(spectrum)
        if rounded != "float32":
            ends, residuals = _by_quotient(_network_gap(plan, point, pool), spectrum.vectors)
    return _row(
        plan, samples_of_full(pool), abs(point.loss - loss), point.gradient - gradient, ends, residuals, spectrum
    )  # fmt: skip


def _search(plan: Plan, point: Point, pool: Pool) -> Spectrum:
    """The ends of the spectrum by rounded products with the Hessian; the graph that these keep is gone at the end."""
    gap = _network_gap(plan, point, pool)

    def product(direction: Tensor) -> Tensor:
        with number_formats.float32_products(point.precision, point.device):
            return gap.product(direction)

    return lanczos(
        product, gap.size, count=1, tolerance=plan.tolerance, most=plan.products, dtype=gap.dtype, device=gap.device
    )


def _network_gap(plan: Plan, point: Point, pool: Pool) -> NetworkGap:
    return NetworkGap(point.model, pool.data, pool.targets, pool.coefficients("S"), point.device, plan.batch_size)


def _at_centre(gap: Gap) -> tuple[float, Tensor]:
    value, gradient = gap.value_and_gradient(torch.zeros(gap.size, dtype=gap.dtype, device=gap.device))
    return value, gradient.double()


def _ends(spectrum: Spectrum) -> tuple[list[float], list[float]]:
    """The largest and the smallest eigenvalue, and the residual of each."""
    residuals = [spectrum.largest_residuals[0], spectrum.smallest_residuals[0]]
    return [spectrum.largest[0], spectrum.smallest[0]], residuals


def _by_quotient(gap: Gap, vectors: Tensor) -> tuple[list[float], list[float]]:
    """The Rayleigh quotient of each vector, and its residual."""
    ends, residuals = [], []
    for vector in vectors:
        unit = vector.double() / vector.double().norm()
        image = gap.product(vector).double() / vector.double().norm()
        value = float(unit @ image)
        ends.append(value)
        residuals.append(float((image - value * unit).norm()))
    return ends, residuals


def _row(
    plan: Plan, samples: int, loss_gap: float, gradient: Tensor, ends: list[float], residuals: list[float],
    spectrum: Spectrum,
) -> dict[str, Any]:  # fmt: skip
    magnitude, length = max(map(abs, ends)), float(gradient.norm())
    curvature = plan.rho / 2 * magnitude
    return {
        "loss_gap": loss_gap,
        "gradient_term": length,
        "curvature_term": curvature,
        "bound": length + curvature,
        "lambda_max": ends[0],
        "lambda_min": ends[1],
        "lambda_magnitude": magnitude,
        "lambda_max_residual": residuals[0],
        "lambda_min_residual": residuals[1],
        "products": spectrum.products,
        "samples": samples,
    }


def train_and_test(plan: Plan, splits: Splits, subset: Subset, seed: int) -> float:
    """The test accuracy after the last epoch."""
    kept = subset.apply(splits.train)
    network = train(plan.net, kept, epochs=plan.epochs, schedule="cosine", seed=seed)
    return accuracy(network, splits.test)
