"""Methods that look at where the samples lie, not at what they should be."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lcmat.runtime import one_thread
from lcmat.selection.distances import Divergences, Euclidean, Unmeasured
from lcmat.selection.farthest import farthest_first
from lcmat.selection.kmeans import k_means
from lcmat.selection.registry import SELECTORS, SelectorFacts
from lcmat.selection.ties import Ties
from lcmat.types import Picks, Signals


@SELECTORS.add(
    "herding",
    "keeps the mean of the picks' features as near as it can to the mean of all",
    facts=SelectorFacts(
        needs=("features",),
        reference="Welling, Herding dynamical weights to learn, ICML 2009; as in Rebuffi et al., iCaRL, CVPR 2017",
        cost="O(k n d) time, O(n d) memory",
        regression=True,
    ),
)
def herding(points: Sequence[Signals], count: int, *, generator: torch.Generator, given: Tensor | None = None) -> Picks:
    """Pick t is argmin_j ‖μ − (f_j + Σ_{i ∈ S} f_i)/t‖₂ over the samples not yet picked, μ the mean feature.

    Gains are how much nearer each pick brings the mean; they can be negative.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.tensor([[0.0], [1.0], [5.0]]))
        >>> herding([signals], 2, generator=torch.Generator()).order.tolist()
        [1, 2]
    """
    features = points[0].need("features")
    ties = Ties(len(features), generator, features.device)
    centred = features - features.mean(0)
    squares = centred.square().sum(1)
    order = torch.empty(count, dtype=torch.int64, device=features.device)
    lengths = torch.empty(count, dtype=torch.float64, device=features.device)  # ‖Σ_{i ∈ S} (f_i − μ)‖ after each pick
    total = torch.zeros_like(centred[0])
    settled = 0 if given is None else len(given)
    with one_thread():
        for t in range(count):
            if given is not None and t < settled:
                pick = given[t : t + 1]
            else:
                # ‖Σ + f_j‖² up to a constant; around the mean, μ is the origin.
                scores = torch.addmv(squares, centred, total, alpha=2)
                scores.index_fill_(0, order[:t], torch.inf)
                pick = ties.best(-scores)
            total = total + centred.index_select(0, pick)[0]
            order[t] = pick[0]
            lengths[t] = torch.linalg.vector_norm(total, dtype=torch.float64)
    errors = lengths / torch.arange(1, count + 1, device=lengths.device)
    at_random = squares.mean().sqrt().double().reshape(1)  # the error of a single random pick, on average
    return Picks(order, gains=torch.cat([at_random, errors[:-1]]) - errors)


@SELECTORS.add(
    "k-center",
    "covers all features with balls as small as it can: farthest first",
    facts=SelectorFacts(
        needs=("features",),
        reference="Sener and Savarese, Active learning for CNNs: a core-set approach, ICLR 2018",
        cost="O(k n d) time, O(n d) memory",
        regression=True,
    ),
)
def k_center(
    points: Sequence[Signals], count: int, *, generator: torch.Generator, given: Tensor | None = None
) -> Picks:
    """Start nearest to the mean, then add again and again the sample farthest from all picks.

    The radius max_i min_{j ∈ S} ‖f_i − f_j‖ is at most twice the smallest possible (Gonzalez, 1985). Gains are the
    distances of the picks to those before them.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.tensor([[0.0], [1.0], [2.0], [9.0]]))
        >>> k_center([signals], 2, generator=torch.Generator()).order.tolist()
        [2, 3]
    """
    features = points[0].need("features")
    ties = Ties(len(features), generator, features.device)
    pairs = Euclidean(features)
    first = int(ties.best(-pairs.squares))
    return farthest_first(Unmeasured(pairs, features.device), count, first=first, ties=ties, given=given)


@SELECTORS.add(
    "contextual-diversity",
    "covers all predictions: farthest first under their symmetric Kullback-Leibler divergence",
    facts=SelectorFacts(
        needs=("logits",),
        reference="Agarwal et al., Contextual diversity for active learning, ECCV 2020",
        cost="O(k n C) time, O(n C) memory",
    ),
)
def contextual_diversity(
    points: Sequence[Signals], count: int, *, generator: torch.Generator, given: Tensor | None = None
) -> Picks:
    """Farthest first under D_ij = ½ KL(p_i ‖ p_j) + ½ KL(p_j ‖ p_i), p = softmax(z), from the smallest Σ_j D_ij on.

    Gains are the divergences of the picks to the nearest of those before them.

    Example:
        >>> import torch
        >>> signals = Signals(logits=torch.tensor([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [0.0, 9.0]]))
        >>> contextual_diversity([signals], 2, generator=torch.Generator()).order.tolist()
        [0, 3]
    """
    logits = points[0].need("logits")
    ties = Ties(len(logits), generator, logits.device)
    pairs = Divergences(logits)
    first = int(ties.best(-pairs.sums))
    return farthest_first(Unmeasured(pairs, logits.device), count, first=first, ties=ties, given=given)


@SELECTORS.add(
    "prototypes",
    "keeps the sample nearest to each centre of a k-means clustering of the features",
    facts=SelectorFacts(
        needs=("features",),
        reference="Lloyd, Least squares quantization in PCM, 1982; "
        "start of Arthur and Vassilvitskii, k-means++, SODA 2007",
        cost="O(T k n d) time for T rounds, O(n d) memory",
        weighted=True,
        prefix=False,
        random=True,
        regression=True,
    ),
)
def prototypes(points: Sequence[Signals], count: int, *, generator: torch.Generator, iterations: int = 100) -> Picks:
    """One sample of each of k clusters: the member with the smallest ‖f_i − μ‖₂, the largest cluster first.

    The weight of a pick is the size of its cluster.

    Args:
        points: the Signals of one group.
        count: k, how many clusters and picks.
        generator: draws the start, and orders the samples for breaking ties.
        iterations: the most rounds of Lloyd's algorithm; it stops earlier once a round gains less than 0.01 %.

    Example:
        >>> import torch
        >>> signals = Signals(features=torch.tensor([[0.0], [0.1], [0.2], [5.0], [5.2], [5.4], [5.6], [5.3]]))
        >>> picks = prototypes([signals], 2, generator=torch.Generator().manual_seed(0))
        >>> picks.order.tolist(), picks.weigh(2).tolist()
        ([7, 1], [5.0, 3.0])
    """
    if iterations < 1:
        raise ValueError(f"expected iterations of 1 or more, got {iterations}")
    features = points[0].need("features")
    shuffled = torch.randperm(len(features), generator=generator, device=generator.device).to(features.device)
    clusters = k_means(features[shuffled], count, generator=generator, iterations=iterations)
    nearest_first = torch.sort(clusters.squares, stable=True).indices
    by_cluster = nearest_first[torch.sort(clusters.owner[nearest_first], stable=True).indices]
    members = by_cluster[clusters.sizes.cumsum(0) - clusters.sizes]  # the first, hence nearest, of each cluster
    sizes = torch.sort(clusters.sizes, descending=True, stable=True)
    return Picks(shuffled[members[sizes.indices]], weigh=lambda k: sizes.values[:k].double())
