"""Methods that give each sample a score and keep the highest: uncertain, forgotten or badly fitted samples."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lcmat.linear_head import factors, gradient_norms
from lcmat.selection.ranking import keep_highest
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.types import Picks, Signals

UNCERTAINTY = SelectorFacts(
    needs=("logits",),
    reference="",
    cost="O(n (C + log n)) time, O(n C) memory",
    score=True,
)


@SELECTORS.add(
    "least-confidence",
    "keeps the samples whose most probable class is least probable",
    facts=replace(UNCERTAINTY, reference="Lewis and Gale, A sequential algorithm for training text classifiers, 1994"),
)
def least_confidence(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score 1 − max_c p_c with p = softmax(z), `[n]`.

    Example:
        >>> signals = Signals(logits=torch.tensor([[4.0, 0.0], [0.1, 0.0], [0.0, 1.0]]))
        >>> least_confidence([signals], 2, generator=torch.Generator()).order.tolist()
        [1, 2]
    """
    return keep_highest(_beside_the_largest(points[0]).sum(1), count, generator=generator)


@SELECTORS.add(
    "entropy",
    "keeps the samples whose predicted distribution has the largest entropy",
    facts=replace(UNCERTAINTY, reference="Shannon, 1948; as in Settles, Active learning literature survey, 2009"),
)
def entropy(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score −Σ_c p_c log p_c with p = softmax(z), `[n]`.

    Example:
        >>> signals = Signals(logits=torch.tensor([[4.0, 0.0], [0.1, 0.0], [0.0, 1.0]]))
        >>> entropy([signals], 2, generator=torch.Generator()).order.tolist()
        [1, 2]
    """
    return keep_highest(torch.special.entr(points[0].probabilities).sum(1), count, generator=generator)


@SELECTORS.add(
    "margin",
    "keeps the samples whose two most probable classes are closest",
    facts=replace(
        UNCERTAINTY,
        reference="Scheffer, Decomain and Wrobel, Active hidden Markov models for information extraction, 2001",
    ),
)
def margin(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score 1 − (p₁ − p₂) with p₁ and p₂ the two largest of p = softmax(z), `[n]`.

    Example:
        >>> signals = Signals(logits=torch.tensor([[4.0, 0.0, 3.9], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
        >>> margin([signals], 2, generator=torch.Generator()).order.tolist()
        [0, 2]
    """
    others = _beside_the_largest(points[0])
    return keep_highest(others.sum(1) + others.amax(1), count, generator=generator)


@SELECTORS.add(
    "forgetting",
    "keeps the samples that training unlearnt most often, or never learnt",
    facts=SelectorFacts(
        needs=("record",),
        reference="Toneva et al., An empirical study of example forgetting during deep neural network learning, "
        "ICLR 2019",
        cost="O(n (E + log n)) time, O(n E) memory for E recorded epochs",
        several_points=True,
        score=True,
    ),
)
def forgetting(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score: in how many epochs a sample went from right to wrong; a sample that never was right scores all E epochs.

    The records of several trainings are summed. No sample can be forgotten more than E/2 times, so that those never
    learnt rank first.

    Example:
        >>> from lcmat.types import Record
        >>> correct = torch.tensor([[1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=torch.bool)  # epochs × samples
        >>> signals = Signals(labels=torch.zeros(3, dtype=torch.int64), record=Record(correct, correct.float()))
        >>> forgetting([signals], 3, generator=torch.Generator()).order.tolist()
        [2, 0, 1]
    """
    scores = torch.stack([_forgotten(signals) for signals in points]).sum(0)
    return keep_highest(scores, count, generator=generator)


@SELECTORS.add(
    "grand",
    "keeps the samples with the largest gradients of the last layer",
    facts=SelectorFacts(
        needs=("features", "logits", "labels"),
        reference="Paul, Ganguli and Dziugaite, Deep learning on a data diet, NeurIPS 2021",
        cost="O(n (C + d + log n)) time, O(n (C + d)) memory",
        several_points=True,
        regression=True,
        score=True,
    ),
)
def grand(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score ‖g‖₂ = ‖p − y‖₂·‖[f, 1]‖₂, the norm of the last layer's per-sample gradient, averaged over the points.

    Example:
        >>> signals = Signals(features=torch.eye(3), logits=-torch.eye(3), labels=torch.tensor([0, 1, 1]))
        >>> len(grand([signals], 2, generator=torch.Generator()).order)
        2
    """
    scores = torch.stack([gradient_norms(factors(signals)).double() for signals in points]).mean(0)
    return keep_highest(scores, count, generator=generator)


@SELECTORS.add(
    "el2n",
    "keeps the samples whose predictions are farthest from their labels",
    facts=SelectorFacts(
        needs=("logits", "labels"),
        reference="Paul, Ganguli and Dziugaite, Deep learning on a data diet, NeurIPS 2021",
        cost="O(n (C + log n)) time, O(n C) memory",
        several_points=True,
        regression=True,
        score=True,
    ),
)
def el2n(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score ‖p − y‖₂ with p = softmax(z) and y one-hot, averaged over the points, `[n]`.

    Example:
        >>> signals = Signals(logits=torch.tensor([[4.0, 0.0], [0.1, 0.0], [0.0, 1.0]]), labels=torch.zeros(3).long())
        >>> el2n([signals], 2, generator=torch.Generator()).order.tolist()
        [2, 1]
    """
    scores = torch.stack([signals.residuals.norm(dim=1) for signals in points]).mean(0)
    return keep_highest(scores, count, generator=generator)


def _beside_the_largest(signals: Signals) -> Tensor:
    """The probabilities with the largest of each row set to 0, `[n, C]`.

    Their sum is 1 − max p without the digits that the difference would lose for a confident sample.
    """
    probabilities = signals.probabilities
    return probabilities.scatter(1, probabilities.argmax(1, keepdim=True), 0.0)


def _forgotten(signals: Signals) -> Tensor:
    """How often each sample went from right to wrong, or the number of epochs if it never was right, `[n]`."""
    assert signals.record is not None  # the facts say that it is needed, and `select` has looked
    correct = signals.record.correct
    events = (correct[:-1] & ~correct[1:]).sum(0)
    return torch.where(correct.any(0), events, len(correct))
