"""Methods that spread over a score or look at a sample's surroundings, so as not to take the extremes alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lcmat.selection.budget import shares
from lcmat.selection.distances import Euclidean
from lcmat.selection.ranking import keep_highest
from lcmat.selection.registry import SELECTORS, SelectorFacts, find_score
from lcmat.types import Picks, Signals

BLOCK = 2**24  # numbers in the largest temporary: 64 MB in single precision


@SELECTORS.add(
    "ccs",
    "spreads the budget evenly over the range of a score, its highest share cut off",
    facts=SelectorFacts(
        needs=("logits", "labels"),  # of the default score; `select` looks at what the chosen one needs
        reference="Zheng et al., Coverage-centric coreset selection for high pruning rates, ICLR 2023",
        cost="the score's, and O(n log n) time and O(n) memory",
        prefix=False,
        several_points=True,
        random=True,
        regression=True,
    ),
)
def ccs(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    score: str = "el2n",
    cutoff: float = 0.3,
    strata: int = 50,
) -> Picks:
    """Cut off the samples of highest score, split the rest by score into strata, draw about as many from each.

    The samples of highest score are often mislabelled. Strata have equal width in the score; one smaller than its share
    is taken whole and leaves the rest to the others. Gains are the scores.

    Args:
        points: the Signals of one group, with what the score needs.
        count: how many to pick.
        generator: draws within the strata, and orders the samples for breaking ties.
        score: the name of a method that ranks by a score, applied with its default options.
        cutoff: β, the share of the samples that is cut off; less where too few would be left.
        strata: how many parts the range of the score is split into.

    Example:
        >>> logits = torch.stack([torch.zeros(9), torch.linspace(-4, 4, 9)], 1)
        >>> signals = Signals(logits=logits, labels=torch.zeros(9).long())
        >>> picks = ccs([signals], 3, generator=torch.Generator().manual_seed(0), cutoff=0.0, strata=3)
        >>> sorted(int(3 * gain / 2**0.5) for gain in picks.gains.tolist())  # one of each third of the range
        [0, 1, 2]
    """
    if not 0 <= cutoff < 1:
        raise ValueError(f"expected a cutoff of at least 0 and below 1, got {cutoff}; 0.3 is usual for a tenth")
    if strata < 1:
        raise ValueError(f"expected strata of 1 or more, got {strata}; the paper uses 50")
    n = points[0].n
    ranking = find_score(score).function(points, n, generator=generator)
    assert ranking.gains is not None  # the scores themselves
    kept = slice(min(int(cutoff * n), n - count), n)
    order, scores = ranking.order[kept], ranking.gains[kept]
    shuffled = torch.randperm(len(order), generator=generator, device=generator.device).to(order.device)
    chosen = shuffled[_draw(_strata(scores[shuffled], strata), count)]
    return Picks(order[chosen], gains=scores[chosen])


def _strata(scores: Tensor, count: int) -> Tensor:
    """Which of `count` parts of equal width each score falls into, `[n]`."""
    low, high = scores.min(), scores.max()
    width = (high - low) / count
    return ((scores - low) / width).long().clamp_(max=count - 1) if width > 0 else torch.zeros_like(scores).long()


def _draw(strata: Tensor, count: int) -> Tensor:
    """The first samples of each stratum, as many as its share of `count`, the strata in turn; `[count]`."""
    sizes = torch.bincount(strata)
    # What does not divide falls to the largest strata, as in the paper.
    filled = sizes.argsort(descending=True, stable=True)[: int((sizes > 0).sum())]
    budgets = torch.zeros_like(sizes)
    budgets[filled] = torch.tensor(shares(count, sizes[filled].tolist(), "equal"), device=sizes.device)
    by_stratum = torch.sort(strata, stable=True).indices
    starts = sizes.cumsum(0) - sizes
    place = torch.arange(len(strata), device=strata.device) - starts[strata[by_stratum]]
    turns = place[place < budgets[strata[by_stratum]]]
    return by_stratum[place < budgets[strata[by_stratum]]][torch.sort(turns, stable=True).indices]


@SELECTORS.add(
    "moderate",
    "keeps the samples whose distance to their class's centre is nearest the median",
    facts=SelectorFacts(
        needs=("features", "labels"),
        reference="Xia et al., Moderate coreset: a universal method of data selection for real-world data-efficient "
        "deep learning, ICLR 2023",
        cost="O(n (d + log n)) time, O(n d) memory",
        score=True,
    ),
)
def moderate(points: Sequence[Signals], count: int, *, generator: torch.Generator) -> Picks:
    """Score −|d − median(d)| with d_i = ‖f_i − μ_{y_i}‖₂ and μ_c the mean feature of class c, `[n]`.

    Example:
        >>> features = torch.tensor([[0.0], [1.0], [2.0], [3.0], [14.0]])
        >>> signals = Signals(features=features, labels=torch.zeros(5).long())
        >>> moderate([signals], 1, generator=torch.Generator()).order.tolist()  # the distances are 4, 3, 2, 1 and 10
        [1]
    """
    features, labels = points[0].need("features"), points[0].need("labels")
    classes, own = labels.unique(return_inverse=True)
    centres = torch.zeros(len(classes), features.shape[1], dtype=torch.float64, device=features.device)
    centres.index_add_(0, own, features.double()).div_(torch.bincount(own)[:, None])
    distances = torch.cat(
        [
            (part.double() - centres[classes_of_part]).norm(dim=1)
            for part, classes_of_part in zip(features.split(4096), own.split(4096), strict=True)
        ]
    )
    return keep_highest(-(distances - _median(distances)).abs(), count, generator=generator)


def _median(values: Tensor) -> Tensor:
    """The median; of an even number of values the mean of the middle two."""
    ordered, n = values.sort().values, len(values)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


@SELECTORS.add(
    "cal",
    "keeps the samples whose predictions differ most from those of their neighbours",
    facts=SelectorFacts(
        needs=("features", "logits"),
        reference="Margatina et al., Active learning by acquiring contrastive examples, EMNLP 2021",
        cost="O(n² d) time, O(n (d + C)) memory",
        score=True,
    ),
)
def cal(
    points: Sequence[Signals],
    count: int,
    *,
    generator: torch.Generator,
    neighbours: int = 10,
) -> Picks:
    """Score (1/k) Σ_{j ∈ N(i)} KL(p_j ‖ p_i) over the k nearest neighbours of sample i by Euclidean feature distance.

    Args:
        points: the Signals of one group.
        count: how many to pick.
        generator: orders the samples for breaking ties.
        neighbours: k; all others where the group has fewer.

    Example:
        >>> features = torch.tensor([[0.0], [0.1], [0.2], [9.0], [9.1]])
        >>> logits = torch.tensor([[0.0, 3.0], [3.0, 0.0], [0.0, 3.0], [0.0, 3.0], [0.0, 3.0]])
        >>> signals = Signals(features=features, logits=logits)
        >>> cal([signals], 1, generator=torch.Generator(), neighbours=2).order.tolist()
        [1]
    """
    if neighbours < 1:
        raise ValueError(f"expected neighbours of 1 or more, got {neighbours}; the paper uses 10")
    pairs = Euclidean(points[0].need("features"))
    logarithms = torch.log_softmax(points[0].need("logits").double(), dim=1)
    probabilities = logarithms.exp()
    negative_entropies = (probabilities * logarithms).sum(1)
    k = min(neighbours, pairs.n - 1)
    scores = torch.zeros_like(negative_entropies)
    everyone = torch.arange(pairs.n, device=scores.device)
    for rows in everyone.split(max(1, BLOCK // max(pairs.n, 10 * probabilities.shape[1]))):
        if k == 0:
            break
        near = _nearest_others(pairs, rows, k)
        # Σ_c p_jc (log p_jc − log p_ic), averaged over j before it is summed over c.
        crossed = (probabilities[near].mean(1) * logarithms[rows]).sum(1)
        scores[rows] = (negative_entropies[near].mean(1) - crossed).clamp_(min=0)
    return keep_highest(scores, count, generator=generator)


def _nearest_others(pairs: Euclidean, rows: Tensor, k: int) -> Tensor:
    """The k nearest samples to each of `rows`, itself left out, `[rows, k]`."""
    squares = pairs.squared_block(rows, slice(None))
    squares[torch.arange(len(rows), device=rows.device), rows] = torch.inf
    return squares.topk(k, dim=1, largest=False, sorted=False).indices
