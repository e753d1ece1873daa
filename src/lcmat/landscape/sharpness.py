"""How much worse L_abs = |h| becomes within a ball: max_{‖ε‖ ≤ ρ} (|h(ε)| − |h(0)|)/ρ, from below."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lcmat import seeding
from lcmat.landscape.gap import Gap

# Steps shrink or grow by this much when they fail or succeed.
_SHRINK, _GROW = 0.25, 2.0
_SMALLEST_STEP = 1e-6
_FLAT = 1e-4
# A step that gains less than this share of what the slope promises over a radius is the last one.
_SLOW = 1e-5


@dataclass(frozen=True, eq=False)
class Sharpness:
    """The largest rise of L_abs that was found in a ball.

    Attributes:
        rho: ρ, the radius.
        value: (|h(ε)| − |h(0)|)/ρ at the best ε found: a lower bound on the sharpness, at least 0.
        best: for h and for −h, the ε of the largest value found, `[2, size]`.
        evaluations: of value and gradient.
    """

    rho: float
    value: float
    best: Tensor
    evaluations: int


def measure_sharpness(
    gap: Gap,
    rho: float,
    *,
    starts: Iterable[Tensor] = (),
    restarts: int = 2,
    steps: int = 30,
    seed: int = 0,
) -> Sharpness:
    """The sharpness of L_abs by projected gradient ascent, a lower bound.

    |h| is not smooth where h = 0, so h and −h are maximised apart, each from several places on the surface of the ball:
    along its gradient, along the given directions, and along random ones.

    Args:
        gap: h.
        rho: ρ, the radius of the ball.
        starts: further directions, each a pair `[2, size]` for h and for −h, such as the eigenvectors of the largest
            and of the smallest eigenvalue. They are turned to the side to which the function rises.
        restarts: random directions to start along.
        steps: of each ascent, at most.
        seed: of the random directions.

    Raises:
        ValueError: for a radius that is not above 0.
    """
    if not rho > 0:
        raise ValueError(f"expected rho above 0, got {rho}")
    centre = torch.zeros(gap.size, dtype=gap.dtype, device=gap.device)
    here, gradient = gap.value_and_gradient(centre)
    draws = seeding.generator(seed, "sharpness")
    random = [
        torch.randn(gap.size, generator=draws, dtype=torch.float64).to(gradient)  # the same on every device
        for _ in range(restarts)
    ]
    pairs = [pair.to(gradient) for pair in starts]
    highest, best, evaluations = abs(here), [], 1
    for which, sign in enumerate((1.0, -1.0)):
        value, place = sign * here, centre
        for direction in (sign * gradient, *(pair[which] for pair in pairs), *random):
            if not float(direction.norm()) > 0:
                continue
            uphill = direction if sign * float(direction @ gradient) >= 0 else -direction
            found, shift, used = _ascend(gap, sign, _onto(uphill, rho, always=True), rho, steps)
            evaluations += used
            if found > value:
                value, place = found, shift
        highest = max(highest, value)
        best.append(place)
    return Sharpness(rho, (highest - abs(here)) / rho, torch.stack(best), evaluations)


def _ascend(gap: Gap, sign: float, start: Tensor, rho: float, steps: int) -> tuple[float, Tensor, int]:
    """Climb sign · h inside the ball; the value, the place, and how often h was evaluated."""
    shift = start
    value, gradient = _signed(gap, sign, shift)
    step = rho / max(float(gradient.norm()), torch.finfo(gap.dtype).tiny)
    smallest = _SMALLEST_STEP * step
    for used in range(2, steps + 2):
        if _at_peak(shift, gradient, rho):
            return value, shift, used - 1
        candidate = _onto(shift + step * gradient, rho)
        higher, slope = _signed(gap, sign, candidate)
        if higher > value:
            slow = higher - value <= _SLOW * rho * float(slope.norm())
            value, shift, gradient, step = higher, candidate, slope, step * _GROW
            if slow:
                return value, shift, used
        else:
            step *= _SHRINK
            if step < smallest:
                return value, shift, used
    return value, shift, steps + 1


def _signed(gap: Gap, sign: float, shift: Tensor) -> tuple[float, Tensor]:
    value, gradient = gap.value_and_gradient(shift)
    return sign * value, sign * gradient


def _onto(shift: Tensor, rho: float, *, always: bool = False) -> Tensor:
    """The nearest point of the ball; of its surface, if always."""
    length = float(shift.norm())
    return shift * (rho / length) if always or length > rho else shift


def _at_peak(shift: Tensor, gradient: Tensor, rho: float) -> bool:
    """Whether the gradient vanishes, or points straight out of the ball at its surface."""
    steepness = float(gradient.norm())
    if steepness == 0:
        return True
    if float(shift.norm()) < rho * (1 - 1e-5):
        return False
    outward = float(shift @ gradient) / float(shift.norm())
    across = max(0.0, steepness**2 - outward**2) ** 0.5
    return outward > 0 and across <= _FLAT * steepness
