"""Methods that choose what helps on held-out samples."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lcmat.linear_head import factors, mean_gradient, products_with
from lcmat.selection.course import pick_repeatedly
from lcmat.selection.held_out import held_out
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.selection.ties import Picker, Ties
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "glister",
    "picks one by one what lowers the validation loss most in one gradient step; without validation Signals, the "
    "training loss",
    facts=SelectorFacts(
        needs=("features", "logits", "labels"),
        reference="Killamsetty et al., GLISTER: generalization based data subset selection, AAAI 2021",
        cost="O(k (n + v) C d) time for v validation samples, O((n + v) (C + d)) memory",
        prefix=False,
        regression=True,
        validation=True,
    ),
)
def glister(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    given: Tensor | None = None,
    rate: float = 0.1,
) -> Picks:
    """Pick argmax_j (η/k) ⟨∇L_V(W), g_j⟩, then really step: W ← W − (η/k) g_j, and again until there are k.

    L_V is the mean loss of the validation samples of the group's classes, g_j = r_j ⊗ a_j the gradient of sample j at
    the weights the model came with. All k steps together are one gradient step of length η on the picks' mean loss.
    The gain is how much L_V falls, to first order. A step changes nothing but the validation logits,
    z_v ← z_v − (η/k) ⟨a_v, a_j⟩ r_j, so no weights are kept, and ∇L_V = Σ_v r_v ⊗ a_v / |V| is computed afresh for
    every pick. Without validation Signals the group itself is V.

    Args:
        points: the Signals of the group.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        given: samples that are picked already, `[g]`.
        rate: η, the length of the step that all picks take together.

    Example:
        >>> signals = Signals(features=torch.eye(3), logits=-torch.eye(3), labels=torch.tensor([0, 1, 1]))
        >>> len(glister([signals], 2, generator=torch.Generator().manual_seed(0)).order)
        2
    """
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"expected a rate above 0, got {rate}; 0.1 is usual")
    signals = points[0]
    head = factors(signals)
    picker = Picker(Ties(signals.n, generator, head.inputs.device), given)
    validation = held_out(signals)
    note = "" if validation is not signals else "glister without validation signals uses the training set"
    if note and signals.validation is not None:
        note = "glister judges by their own samples the classes that the validation signals lack"
    judge = factors(validation)
    judge = replace(judge, residuals=judge.residuals.clone())
    length = rate / count
    logits = validation.need("logits").double().clone()
    steps = head.residuals.double()

    def slopes() -> Tensor:
        """⟨∇L_V, g⟩ of every sample."""
        return products_with(head, mean_gradient(judge))

    def take(pick: Tensor) -> None:
        along = (judge.inputs @ head.inputs.index_select(0, pick)[0]).double()
        logits.addcmul_(along[:, None], steps.index_select(0, pick), value=-length)
        judge.residuals.copy_(validation.residuals_at(logits))

    order, found = pick_repeatedly(slopes, take, count, picker)
    return Picks(order, length * found, note=note)
