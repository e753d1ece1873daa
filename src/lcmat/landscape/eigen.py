"""Extreme eigenvalues of a symmetric matrix that is known by its products alone."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.landscape.gap import Gap
from lcmat.landscape.head_gap import HeadGap

# A matrix of this many rows is built and solved whole: seconds, and exact. Building it takes n · size² operations.
EXACT_SIZE = 2048
_EXACT_WORK = 2e10
_CHECK_EVERY = 4


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The ends of a spectrum.

    A residual ‖Hv − λv‖ is an error bound: some eigenvalue lies that close to λ. Ritz values lie inside the spectrum,
    so that `largest[0]` may only be too small and `smallest[0]` only too large. A residual is never told to be smaller
    than the rounding of the vectors' type.

    Attributes:
        largest: leading eigenvalues, descending.
        smallest: trailing eigenvalues, ascending.
        largest_residuals: ‖Hv − λv‖ of each of the largest.
        smallest_residuals: likewise of the smallest.
        vectors: unit eigenvectors of the first of each, `[2, size]`.
        products: with the matrix; 0 where it was solved whole.
        converged: whether every residual is within the tolerance.
    """

    largest: tuple[float, ...]
    smallest: tuple[float, ...]
    largest_residuals: tuple[float, ...]
    smallest_residuals: tuple[float, ...]
    vectors: Tensor
    products: int
    converged: bool

    @property
    def magnitude(self) -> float:
        """The largest |λ|, which is what the bound on L_abs needs."""
        return max(abs(self.largest[0]), abs(self.smallest[0]))

    @property
    def residual(self) -> float:
        """The residual of the eigenvalue of largest magnitude."""
        first = abs(self.largest[0]) >= abs(self.smallest[0])
        return (self.largest_residuals if first else self.smallest_residuals)[0]


def spectrum_of(
    gap: Gap,
    *,
    count: int = 3,
    tolerance: float = 1e-3,
    most: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Spectrum:
    """The extreme eigenvalues of H_T − H_S: exactly for a small last layer, by Lanczos otherwise."""
    if isinstance(gap, HeadGap) and gap.size <= EXACT_SIZE and len(gap.inputs) * gap.size**2 <= _EXACT_WORK:
        return solve_whole(gap.hessian(), count=count)
    return lanczos(
        gap.product,
        gap.size,
        count=count,
        tolerance=tolerance,
        most=most,
        seed=seed,
        dtype=gap.dtype,
        device=gap.device,
        progress=progress,
    )


def solve_whole(matrix: Tensor, *, count: int = 3) -> Spectrum:
    """The extreme eigenvalues of a symmetric matrix that is there as a whole.

    Example:
        >>> import torch
        >>> found = solve_whole(torch.diag(torch.tensor([1.0, -4.0, 2.0])), count=2)
        >>> found.largest, found.smallest, found.magnitude
        ((2.0, 1.0), (-4.0, 1.0), 4.0)
    """
    values, vectors = torch.linalg.eigh(matrix)
    count = min(count, len(values))
    exact = (0.0,) * count
    largest, smallest = values.flip(0)[:count].tolist(), values[:count].tolist()
    ends = torch.stack([vectors[:, -1], vectors[:, 0]])
    return Spectrum(tuple(largest), tuple(smallest), exact, exact, ends, products=0, converged=True)


def lanczos(
    product: Callable[[Tensor], Tensor],
    size: int,
    *,
    count: int = 3,
    tolerance: float = 1e-3,
    most: int = 100,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> Spectrum:
    """The extreme eigenvalues by Lanczos' method with full reorthogonalisation (Golub and Van Loan, chapter 10).

    An eigenvalue of which there are several copies may be found once only; which values there are, and the largest and
    the smallest, do not depend on it.

    Args:
        product: the symmetric matrix times a vector `[size]`.
        size: of the matrix.
        count: how many eigenvalues to find at each end.
        tolerance: stop when each of their residuals is at most this times the largest |λ|.
        most: products at most; the basis of as many vectors of `size` is kept.
        seed: of the first vector.
        dtype: of the vectors; the small projected matrix is always solved in float64.
        device: of the vectors.
        progress: called with (products done, products at most).

    Example:
        >>> import torch
        >>> diagonal = torch.linspace(-2, 5, 50, dtype=torch.float64)
        >>> found = lanczos(lambda v: diagonal * v, 50, tolerance=1e-8, dtype=torch.float64)
        >>> round(found.largest[0], 6), round(found.smallest[0], 6), found.converged
        (5.0, -2.0, True)
    """
    count, most = min(count, size), min(most, size)
    draws = seeding.generator(seed, "lanczos")
    basis = torch.empty(most, size, dtype=dtype, device=device)
    diagonal: list[float] = []
    beside: list[float] = []
    vector = _unit_outside(basis[:0], draws)
    for step in range(most):
        basis[step] = vector
        image = product(vector)
        diagonal.append(float(image.double() @ vector.double()))
        image = _orthogonal(image, basis[: step + 1])
        # A residual that is all rounding is an invariant subspace: go on outside of it, while values are missing.
        scale = max(map(abs, (*diagonal, *beside)))
        length = float(image.norm())
        closed = length <= 10 * torch.finfo(dtype).eps * scale
        beside.append(0.0 if closed else length)
        if progress is not None:
            progress(step + 1, most)
        enough = step + 1 >= 2 * count or step + 1 == most
        if enough and (closed or (step + 1) % _CHECK_EVERY == 0 or step + 1 == most):
            found = _ritz(basis[: step + 1], diagonal, beside, count, tolerance)
            if found.converged or step + 1 == most:
                return found
        vector = _unit_outside(basis[: step + 1], draws) if closed else image / length
    raise AssertionError("a matrix of size 0 has no eigenvalues")


def _orthogonal(vector: Tensor, basis: Tensor) -> Tensor:
    """The part of a vector outside the span of the basis; the second pass removes what rounding left."""
    for _ in range(2):
        vector = vector - basis.T @ (basis @ vector)
    return vector


def _unit_outside(basis: Tensor, draws: torch.Generator) -> Tensor:
    """A random unit vector orthogonal to the basis."""
    # Drawn on the processor, so that a seed gives the same start on every device.
    vector = torch.randn(basis.shape[1], generator=draws, dtype=torch.float64).to(basis)
    vector = _orthogonal(vector / vector.norm(), basis)
    unit: Tensor = vector / vector.norm()
    return unit


def _ritz(basis: Tensor, diagonal: list[float], beside: list[float], count: int, tolerance: float) -> Spectrum:
    """Eigenvalues of the projection on the basis; their residuals are |β_k s_k|."""
    off = torch.tensor(beside[:-1], dtype=torch.float64)
    small = torch.diag(torch.tensor(diagonal, dtype=torch.float64)) + torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(small)
    # The whole space leaves no residual.
    last = 0.0 if len(basis) == basis.shape[1] else beside[-1]
    residuals = last * vectors[-1].abs()
    # Below what the vectors' type resolves, the recurrence's residual says nothing of the true one.
    residuals = residuals.clamp(min=torch.finfo(basis.dtype).eps * float(values.abs().max()))
    top, bottom = range(len(values) - 1, len(values) - 1 - count, -1), range(count)
    limit = tolerance * float(values.abs().max())
    ends = torch.stack([vectors[:, -1], vectors[:, 0]]).to(basis) @ basis
    return Spectrum(
        tuple(float(values[place]) for place in top),
        tuple(float(values[place]) for place in bottom),
        tuple(float(residuals[place]) for place in top),
        tuple(float(residuals[place]) for place in bottom),
        ends,
        products=len(basis),
        converged=all(float(residuals[place]) <= limit for place in (*top, *bottom)),
    )
