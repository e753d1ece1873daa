"""Matching the whole gradient with a few weighted ones: orthogonal matching pursuit from inner products alone."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lcmat import runtime
from lcmat.linear_head import Factors, factors, gram, mean_gradient, products_with
from lcmat.selection.course import Course, Replayed
from lcmat.selection.held_out import held_out
from lcmat.selection.nonnegative import GrowingRegression
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.selection.ties import Picker, Ties
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "gradmatch",
    "matches the whole gradient by weighted picks; with validation Signals, the validation gradient",
    facts=SelectorFacts(
        needs=("features", "logits", "labels"),
        reference="Killamsetty et al., GRAD-MATCH: gradient matching based data subset selection, ICML 2021",
        cost="O(k n (C + d + k) + k³) time, O(n (C + d + k) + k²) memory; O(k n C d) and O(n (C + d) + k²) where "
        "k rows of n inner products do not fit",
        weighted=True,
        regression=True,
        validation=True,
    ),
)
def gradmatch(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    memory: int,
    given: Tensor | None = None,
    penalty: float = 0.5,
) -> Picks:
    """Minimise E(S) = min_{w ≥ 0} ‖Σ_{j ∈ S} w_j g_j − T‖² + λ‖w‖² by orthogonal matching pursuit.

    g = r ⊗ a is the last layer's per-sample gradient and T = Σ_i g_i that of the group; with validation Signals, n
    times the mean gradient of the validation samples of the group's classes. Pick j has the largest ⟨g_j, T − Σ w g⟩,
    then all weights are refitted; E never grows and a gain is what E falls by. Once no gradient points along what is
    left, E is at its minimum over all samples: the further picks have weight 0 and come in the order of that product.

    Args:
        points: the Signals of the group.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        memory: bytes that the inner products may take.
        given: samples that are picked already, `[g]`.
        penalty: λ; above 0 it spreads the weight over more samples.

    Example:
        >>> signals = Signals(features=torch.eye(3), logits=-torch.eye(3), labels=torch.tensor([0, 1, 1]))
        >>> picks = gradmatch([signals], 2, generator=torch.Generator().manual_seed(0), memory=1000)
        >>> len(picks.order), bool((picks.weigh(2) >= 0).all())
        (2, True)
    """
    if not (math.isfinite(penalty) and penalty >= 0):
        raise ValueError(f"expected a penalty of 0 or more, got {penalty}; the paper uses 0.5")
    signals = points[0]
    head = factors(signals)
    target = signals.n * mean_gradient(factors(held_out(signals)))
    if head.inputs.device.type != "cpu":
        # In double precision a row of products serves the regression as well, for a third fewer kernels a pick; on a
        # GPU their number decides, on a processor the bytes.
        head = replace(head, residuals=head.residuals.double(), inputs=head.inputs.double())
    picker = Picker(Ties(signals.n, generator, head.inputs.device), given)
    return pursue(head, target, count, picker=picker, memory=memory, penalty=penalty)


def pursue(
    head: Factors, target: Tensor, count: int, *, picker: Picker, memory: int, penalty: float, signed: bool = False
) -> Picks:
    """Orthogonal matching pursuit of a target `[C, d+1]` by the gradients of a head.

    Args:
        head: the factors of the n gradients.
        target: T.
        count: how many to pick.
        picker: takes the best.
        memory: bytes that the inner products may take.
        penalty: λ.
        signed: allow negative weights, and pick by the size of the product: the textbook form.

    Returns:
        Picks with weights, and gains that are the falls of the objective.
    """
    # Two threads for steps this short would mostly wait for each other.
    with runtime.one_thread():
        picked = _Picked(head, target, count, picker, memory=memory, signed=signed)
        regression = GrowingRegression(count, penalty, signed=signed)
        replayed = Replayed(picked.pick, picked.order.device, count - len(picked.course.given))
        history: list[Tensor] = []
        explained = [0.0]
        for t in range(count):
            if t < len(picked.course.given):
                picked.pick(picked.course.given[t])
            else:
                replayed()
            value, goal, products = picked.read()
            if not signed and value <= 0 and t >= len(picked.course.given):
                picked.order[t:] = picker.rest(picked.values, picked.order[:t])[: count - t]
                break
            regression.add(products, goal)
            history.append(regression.weights[: t + 1].clone())
            explained.append(regression.explained)
            picked.weights[: t + 1].copy_(history[-1])
    gains = torch.zeros(count, dtype=torch.float64)
    gains[: len(history)] = torch.tensor(explained, dtype=torch.float64).diff()
    return Picks(picked.order, gains, weigh=lambda k: _weights(history, k, len(head.inputs)))


def _weights(history: Sequence[Tensor], count: int, n: int) -> Tensor:
    """The weights after `count` picks, those after the last refit being 0; n/k each where all are 0."""
    weights = torch.zeros(count, dtype=torch.float64)
    if history:
        fitted = history[min(count, len(history)) - 1]
        weights[: len(fitted)] = fitted
    return weights if weights.sum() > 0 else torch.full_like(weights, n / count)


class _Picked:
    """The picked gradients: their inner products with each other, with the target, and with all n.

    A row of n products for each pick is kept when `memory` allows it; else the weighted sum of the picks is formed,
    `[C, d+1]`, and multiplied with all gradients. The regression wants all digits of the few products it sees: those of
    the rows where these are in double precision, else products of their own with factors kept for that.

    On a GPU one pick is captured and replayed, so shapes are those of the last pick from the first on: what there is no
    pick for yet has weight 0. The weights that it starts from and what the regression wants to know of it travel with
    it, from and to pinned memory.

    Attributes:
        order: the picks, `[capacity]`.
        weights: of the picks, for the caller to set once the last pick is read, on the processor, `[capacity]`.
        values: by which the last pick was the best, `[n]`.
        size: how many picks have been read.
    """

    def __init__(
        self, head: Factors, target: Tensor, capacity: int, picker: Picker, *, memory: int, signed: bool
    ) -> None:
        n, classes, width = len(head.inputs), head.residuals.shape[1], head.inputs.shape[1]
        device = head.inputs.device
        self.head, self.signed = head, signed
        self.size = 0
        self.course = Course(picker, capacity)
        self.order = self.course.order
        pinned = device.type == "cuda"
        self.weights = torch.zeros(capacity, dtype=head.inputs.dtype, pin_memory=pinned)
        self._weights = self.weights if device.type == "cpu" else head.inputs.new_zeros(capacity)
        self._found = torch.zeros(2 + capacity, dtype=torch.float64, pin_memory=pinned)
        self._numbers = self._found.numpy()
        self.target = target.double()
        self.targets = products_with(head, target).double()
        self.values = self.targets
        self.rows: Tensor | None = None
        if capacity * n * head.inputs.element_size() <= memory:
            # A GPU sums over the picks fastest where those of one sample lie side by side.
            shape = (capacity, n) if device.type == "cpu" else (n, capacity)
            rows = head.inputs.new_zeros(shape)
            self.rows = rows if device.type == "cpu" else rows.T
        self.exact = self.rows is not None and self.rows.dtype == torch.float64
        kept = 0 if self.exact else capacity
        self.residuals = torch.zeros(kept, classes, dtype=torch.float64, device=device)
        self.inputs = torch.zeros(kept, width, dtype=torch.float64, device=device)

    def pick(self, pick: Tensor | None = None) -> None:
        """Take a sample `[1]`, by default the best; all before it must have been read."""
        on_cpu = self.order.device.type == "cpu"
        if not on_cpu:
            self._weights.copy_(self.weights, non_blocking=True)
        left = self.targets - self._mixture(self.size if on_cpu else len(self.order))
        self.values = left.abs() if self.signed else left
        pick = self.course.best(self.values) if pick is None else pick
        one = _rows_of(self.head, pick)
        row = None if self.rows is None else gram(one, self.head)
        if self.rows is not None and row is not None:
            self.rows.index_copy_(0, self.course.place, row)
        if not self.exact:
            self.residuals.index_copy_(0, self.course.place, one.residuals.double())
            self.inputs.index_copy_(0, self.course.place, one.inputs.double())
        self.course.settle(pick)
        known = self.size + 1 if on_cpu else len(self.order)
        if self.exact and row is not None:
            goal, products = self.targets.index_select(0, pick), row[0].index_select(0, self.order[:known])
        else:
            residual, inputs = one.residuals[0].double(), one.inputs[0].double()
            goal = (residual @ (self.target @ inputs))[None]
            products = (self.residuals[:known] @ residual) * (self.inputs[:known] @ inputs)
        found = torch.cat([self.values.index_select(0, pick), goal, products])
        self._found[: len(found)].copy_(found, non_blocking=True)

    def read(self) -> tuple[float, float, Tensor]:
        """Of the last pick its value, its product with the target, and those with the picks, itself last, `[size]`.

        This is the only time that a device is waited for; the products are overwritten by the next pick.
        """
        self.size += 1
        if self.order.device.type == "cuda":
            torch.cuda.current_stream(self.order.device).synchronize()
        return float(self._numbers[0]), float(self._numbers[1]), self._found[2 : 2 + self.size]

    def _mixture(self, known: int) -> Tensor:
        """⟨g_j, Σ_i w_i g_i⟩ for all j and the first `known` picks, `[n]`."""
        weights = self._weights[:known]
        if self.rows is not None:
            return weights @ self.rows[:known]
        some = _rows_of(self.head, self.order[:known])
        return products_with(self.head, (some.residuals * weights[:, None]).T @ some.inputs)


def _rows_of(head: Factors, samples: Tensor) -> Factors:
    """The factors of some gradients; no one looks at their Hessians here."""
    residuals = head.residuals.index_select(0, samples)
    return Factors(residuals, head.inputs.index_select(0, samples), spreads=residuals)
