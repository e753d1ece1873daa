"""What `lcmat.curvature` found: numbers, curves and planes, as tables, files and a page."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from lcmat import files
from lcmat.landscape.diagonal import DiagonalGap
from lcmat.landscape.eigen import Spectrum
from lcmat.landscape.generalisation import Generalisation

if TYPE_CHECKING:
    from lcmat.landscape.surface import Plane, Slice

HEAD, ALL = "head", "all"
PARAMETERS = (HEAD, ALL)


@dataclass(frozen=True)
class Key:
    """Which reduced set: its name, its size and its share of the data."""

    name: str
    size: int
    fraction: float

    @property
    def label(self) -> str:
        """Name and size in one text, different for different sets."""
        return f"{self.name} ({self.size:,})"


@dataclass(frozen=True, eq=False)
class Terms:
    """The bound on the sharpness of L_abs for one reduced set, and what was measured.

    Attributes:
        key: the reduced set.
        parameters: 'head' for the last layer alone, 'all' for the whole network.
        count: how many parameters these are.
        samples: of T that L(T) is the mean of.
        loss_full: L(T; θ).
        loss_reduced: L(S; θ).
        gradient: ‖∇L(T) − ∇L(S)‖₂.
        spectrum: ends of the spectrum of H_T − H_S.
        rho: the main radius.
        sharpness: ρ -> lower bound on max_{‖ε‖ ≤ ρ} (L_abs(θ + ε) − L_abs(θ))/ρ.
    """

    key: Key
    parameters: str
    count: int
    samples: int
    loss_full: float
    loss_reduced: float
    gradient: float
    spectrum: Spectrum
    rho: float
    sharpness: Mapping[float, float]

    @property
    def loss_gap(self) -> float:
        """L_abs(T, S; θ)."""
        return abs(self.loss_full - self.loss_reduced)

    def curvature(self, rho: float | None = None) -> float:
        """The curvature term (ρ/2) max|λ|."""
        return (self.rho if rho is None else rho) / 2 * self.spectrum.magnitude

    def bound(self, rho: float | None = None) -> float:
        """The second-order bound on the sharpness: gradient term plus curvature term."""
        return self.gradient + self.curvature(rho)

    def remainder(self, rho: float | None = None) -> float:
        """Bound minus measured sharpness; negative where terms of higher order, or kinks, outweigh it."""
        radius = self.rho if rho is None else rho
        return self.bound(radius) - self.sharpness[radius]

    def as_records(self) -> list[dict[str, Any]]:
        """One plain record for each radius."""
        spectrum = self.spectrum
        shared = {
            "name": self.key.name,
            "size": self.key.size,
            "fraction": self.key.fraction,
            "parameters": self.parameters,
            "parameter_count": self.count,
            "samples_of_T": self.samples,
            "loss_T": self.loss_full,
            "loss_S": self.loss_reduced,
            "L_abs": self.loss_gap,
            "gradient_term": self.gradient,
            "lambda_max": spectrum.largest[0],
            "lambda_max_residual": spectrum.largest_residuals[0],
            "lambda_min": spectrum.smallest[0],
            "lambda_min_residual": spectrum.smallest_residuals[0],
            "lambda_magnitude": spectrum.magnitude,
            "products": spectrum.products,
            "converged": spectrum.converged,
        }
        return [
            {
                **shared,
                "rho": rho,
                "curvature_term": self.curvature(rho),
                "bound": self.bound(rho),
                "sharpness_from_below": measured,
                "remainder": self.remainder(rho),
            }
            for rho, measured in self.sharpness.items()
        ]

    def eigenvalue_records(self) -> list[dict[str, Any]]:
        """One plain record for each leading eigenvalue of H_T − H_S, at both ends of the spectrum."""
        found = self.spectrum
        ends = {
            "largest": zip(found.largest, found.largest_residuals, strict=True),
            "smallest": zip(found.smallest, found.smallest_residuals, strict=True),
        }
        return [
            {
                "name": self.key.name,
                "size": self.key.size,
                "fraction": self.key.fraction,
                "parameters": self.parameters,
                "end": end,
                "place": place,
                "value": value,
                "residual": residual,
            }
            for end, pairs in ends.items()
            for place, (value, residual) in enumerate(pairs, 1)
        ]


@dataclass(frozen=True, eq=False)
class CurvatureReport:
    """The quantities behind loss-curvature matching, for some reduced sets at one parameter point.

    Attributes:
        terms: for each reduced set and each choice of parameters.
        diagonals: for each reduced set: over all classes, then within each.
        variances: 'all classes' or a class -> Var(λ_k) over T, descending, float64 `[C(d+1)]`.
        generalisation: of each reduced set; empty without test data or without the whole network.
        plane: losses over a plane; None if no pictures were asked for.
        slices: losses along lines, one for each seed.
        protocol: what was done, in the order in which it is told.
        notes: what must be known to read it rightly.
    """

    terms: tuple[Terms, ...]
    diagonals: Mapping[Key, tuple[DiagonalGap, ...]]
    variances: Mapping[str, Tensor]
    generalisation: tuple[Generalisation, ...]
    plane: "Plane | None"
    slices: tuple["Slice", ...]
    protocol: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def find(self, name: str, *, parameters: str = HEAD, size: int | None = None) -> Terms:
        """The terms of one reduced set.

        Raises:
            KeyError: when there is none, or more than one size of it and none was named.
        """
        found = [
            row
            for row in self.terms
            if row.key.name == name and row.parameters == parameters and size in {None, row.key.size}
        ]
        if len(found) != 1:
            have = ", ".join(f"{row.key.name} ({row.key.size}, {row.parameters})" for row in self.terms)
            raise KeyError(f"expected one row of {name!r} for {parameters!r}, found {len(found)}; there are {have}")
        return found[0]

    def table(self) -> str:
        """The terms as text, at the main radius."""
        from lcmat.landscape.page import terms_table

        table = terms_table(self.terms)
        cells = [table.columns, *table.rows]
        widths = [max(len(row[place]) for row in cells) for place in range(len(table.columns))]
        lines = ["  ".join(_pad(text, width, place in table.numeric) for place, (text, width) in
                           enumerate(zip(row, widths, strict=True))) for row in cells]  # fmt: skip
        return "\n".join([table.caption, *(line.rstrip() for line in lines)])

    def as_dict(self) -> dict[str, Any]:
        """Numbers as JSON values; curves and planes are in the files that `save` writes."""
        return {
            "protocol": dict(self.protocol),
            "notes": list(self.notes),
            "terms": [record for row in self.terms for record in row.as_records()],
            "eigenvalues": [record for row in self.terms for record in row.eigenvalue_records()],
            "diagonal": self._diagonal_records(),
            "generalisation": [_generalisation_record(part) for part in self.generalisation],
        }

    def save(self, folder: str | Path) -> Path:
        """Write the data behind the page: terms, eigenvalues and diagonal as CSV, `curvature.json`, `curves.npz`."""
        folder = Path(folder)
        content = self.as_dict()
        for name in ("terms", "eigenvalues", "diagonal"):
            files.write_text(folder / f"{name}.csv", _as_csv(content[name]))
        files.write_json(folder / "curvature.json", content)
        file = io.BytesIO()
        np.savez_compressed(file, **self._arrays())
        files.write_bytes(folder / "curves.npz", file.getvalue())
        return folder

    def save_html(self, path: str | Path, *, title: str = "", commands: Sequence[str] = ()) -> Path:
        """Write the page: one file that needs no other and no network.

        Args:
            path: of the file.
            title: of the page; made from the data's name when empty.
            commands: that make the results again, to be shown.
        """
        from lcmat.landscape.page import describe
        from lcmat.report import render

        return files.write_text(path, render(describe(self, title=title, commands=commands)))

    def _diagonal_records(self) -> list[dict[str, Any]]:
        return [
            {
                "name": key.name,
                "size": key.size,
                "fraction": key.fraction,
                "group": part.group,
                "largest_gap": part.largest,
                "class_index": part.coordinate[0],
                "input_index": part.coordinate[1],
                "rank_by_variance": part.rank,
                "coordinates": part.coordinates,
                "held_by_100": part.held_by(100),
            }
            for key, parts in self.diagonals.items()
            for part in parts
        ]

    def _arrays(self) -> dict[str, Any]:
        """Arrays by name: variances/CLASS, plane/NAME, slice-SEED/NAME, with the positions of each."""
        arrays = {f"variances/{group}": values.numpy() for group, values in self.variances.items()}
        if self.plane is not None:
            arrays["plane/positions"] = self.plane.positions.numpy()
            arrays |= {f"plane/{name}": values.numpy() for name, values in self.plane.losses.items()}
        for part in self.slices:
            arrays[f"slice-{part.seed}/positions"] = part.positions.numpy()
            arrays |= {f"slice-{part.seed}/{name}": values.numpy() for name, values in part.losses.items()}
        return arrays


def _generalisation_record(part: Generalisation) -> dict[str, Any]:
    derived = ("bounded_loss", "vacuous", "right_side", "corollary_left", "corollary_right")
    return {**asdict(part), **{name: getattr(part, name) for name in derived}}


def _as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    names: Iterable[str] = records[0] if records else ()
    writer = csv.DictWriter(file, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


def _pad(text: str, width: int, flush_right: bool) -> str:
    return text.rjust(width) if flush_right else text.ljust(width)
