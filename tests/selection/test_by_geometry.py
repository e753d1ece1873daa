import math
from itertools import combinations, pairwise

import pytest
import torch
from sklearn.cluster import KMeans
from torch import Tensor

import lcmat
from lcmat.selection.distances import Divergences, Euclidean, Index
from lcmat.selection.kmeans import k_means
from lcmat.types import Signals


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _features(n: int, d: int = 8, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=_generator(seed), dtype=torch.float64).relu()


def _distance_of_means(features: Tensor, picks: Tensor) -> float:
    return float((features[picks].mean(0) - features.mean(0)).norm())


@pytest.mark.parametrize("count", [5, 20, 60])
def test_herding_is_nearer_the_mean_than_each_of_50_random_draws(count: int) -> None:
    features = _features(200)
    herded = _distance_of_means(features, lcmat.select(Signals(features=features), "herding", count=count).indices)
    draws = [
        _distance_of_means(features, torch.randperm(200, generator=_generator(seed))[:count]) for seed in range(50)
    ]
    assert herded < min(draws)


def test_herding_is_its_definition() -> None:
    features = _features(30)
    picks: list[int] = []
    for t in range(1, 9):
        total = features[picks].sum(0)
        errors = {j: float((features.mean(0) - (total + features[j]) / t).norm()) for j in range(30) if j not in picks}
        picks.append(min(errors, key=lambda j: errors[j]))
    subset = lcmat.select(Signals(features=features), "herding", count=8)
    assert list(subset) == picks
    assert subset.gains is not None
    reached = [_distance_of_means(features, torch.tensor(picks[:t])) for t in range(1, 9)]
    assert subset.gains[1:].tolist() == pytest.approx([a - b for a, b in pairwise(reached)])


@pytest.mark.parametrize("seed", range(6))
def test_k_center_is_within_twice_the_best_radius(seed: int) -> None:
    features = _features(9, 3, seed)
    matrix = torch.cdist(features, features)
    picks = list(lcmat.select(Signals(features=features), "k-center", count=3))
    radius = float(matrix[picks].min(0).values.max())
    best = min(float(matrix[list(chosen)].min(0).values.max()) for chosen in combinations(range(9), 3))
    assert radius <= 2 * best + 1e-12


def test_k_center_is_farthest_first_from_the_middle() -> None:
    features = _features(40)
    matrix = torch.cdist(features, features)
    picks = [int((features - features.mean(0)).norm(dim=1).argmin())]
    while len(picks) < 10:
        picks.append(int(matrix[picks].min(0).values.argmax()))
    assert list(lcmat.select(Signals(features=features), "k-center", count=10)) == picks


@pytest.mark.parametrize("method", ["k-center", "contextual-diversity"])
def test_farthest_first_computes_one_row_for_each_pick(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A matrix of picks × samples is never kept, nor one of samples × samples computed.
    kind: type[Euclidean] | type[Divergences] = Euclidean if method == "k-center" else Divergences
    asked: list[int] = []
    block = kind.block

    def counting(self: object, rows: Index, columns: Index) -> Tensor:
        assert isinstance(rows, Tensor)
        asked.append(len(rows))
        return block(self, rows, columns)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "block", counting)
    signals = Signals(features=_features(50), logits=_features(50, 4, seed=1))
    lcmat.select(signals, method, count=12)
    assert asked == [1] * 12


def _symmetric_divergence(p: list[float], q: list[float]) -> float:
    return sum(0.5 * a * math.log(a / b) + 0.5 * b * math.log(b / a) for a, b in zip(p, q, strict=True))


def test_contextual_diversity_is_the_naive_double_loop() -> None:
    logits = 3 * torch.randn(35, 5, generator=_generator(), dtype=torch.float64)
    p = torch.softmax(logits, 1).tolist()
    matrix = [[_symmetric_divergence(p[i], p[j]) for j in range(35)] for i in range(35)]
    pairs = Divergences(logits)
    torch.testing.assert_close(pairs.block(slice(None), slice(None)), torch.tensor(matrix, dtype=torch.float64))
    torch.testing.assert_close(pairs.sums, torch.tensor([sum(row) for row in matrix], dtype=torch.float64))
    picks = [min(range(35), key=lambda i: sum(matrix[i]))]
    while len(picks) < 12:
        picks.append(max(range(35), key=lambda j: min(matrix[i][j] for i in picks)))
    subset = lcmat.select(Signals(logits=logits), "contextual-diversity", count=12)
    assert list(subset) == picks
    assert subset.gains is not None
    assert subset.gains[1:].tolist() == pytest.approx(
        [min(matrix[i][picks[t]] for i in picks[:t]) for t in range(1, 12)]
    )


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_divergences_are_exactly_zero_to_oneself_and_finite_for_saturated_predictions(scale: float) -> None:
    logits = scale * torch.randn(20, 3, generator=_generator())
    pairs = Divergences(logits)
    rows = torch.tensor([3, 19, 0])
    block = pairs.block(rows, slice(None))
    assert block[torch.arange(3), rows].tolist() == [0.0, 0.0, 0.0]
    assert bool(torch.isfinite(block).all())
    assert float(block.min()) >= 0
    torch.testing.assert_close(block, pairs.block(slice(None), slice(None))[rows])


@pytest.mark.parametrize("method", ["herding", "k-center", "contextual-diversity", "prototypes"])
def test_equal_samples_are_taken_by_the_seed_and_not_by_the_order_of_the_data(method: str) -> None:
    signals = Signals(features=torch.ones(60, 3), logits=torch.ones(60, 3))
    draws = [sorted(lcmat.select(signals, method, count=6, seed=seed)) for seed in range(8)]
    assert len({tuple(draw) for draw in draws}) == 8
    assert [0, 1, 2, 3, 4, 5] not in draws


@pytest.mark.parametrize("method", ["herding", "k-center", "contextual-diversity"])
def test_given_samples_come_first_and_are_completed(method: str) -> None:
    signals = Signals(features=_features(40), logits=_features(40, 4, seed=1))
    begun = lcmat.select(signals, method, count=5)
    completed = lcmat.select(signals, method, count=12, given=list(begun))
    assert list(completed) == list(lcmat.select(signals, method, count=12))
    other = lcmat.select(signals, method, count=4, given=[7, 3])
    assert list(other)[:2] == [7, 3]
    assert len(set(other)) == 4


def _blobs(n: int, d: int, centres: int, seed: int) -> Tensor:
    places = 4 * torch.randn(centres, d, generator=_generator(seed), dtype=torch.float64)
    return places[torch.arange(n) % centres] + torch.randn(n, d, generator=_generator(seed + 1), dtype=torch.float64)


@pytest.mark.parametrize(("n", "k", "centres"), [(400, 8, 8), (600, 60, 5), (300, 150, 3)])
def test_k_means_is_as_good_as_scikit_learn(n: int, k: int, centres: int) -> None:
    features = _blobs(n, 6, centres, seed=k)
    theirs = min(KMeans(k, n_init=1, random_state=seed).fit(features.numpy()).inertia_ for seed in range(3))
    ours = min(k_means(features, k, generator=_generator(seed)).inertia for seed in range(3))
    assert ours <= 1.05 * theirs


def test_clusters_are_what_they_say() -> None:
    features = _features(120)
    clusters = k_means(features, 17, generator=_generator())
    assert clusters.sizes.tolist() == torch.bincount(clusters.owner, minlength=17).tolist()
    assert int(clusters.sizes.min()) > 0
    for i in range(120):
        centre = features[clusters.owner == clusters.owner[i]].mean(0)
        assert float(clusters.squares[i]) == pytest.approx(float((features[i] - centre).square().sum()))


@pytest.mark.parametrize("block", [64, 2**24])
def test_blocks_change_memory_and_no_cluster(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    features = _features(90)
    whole = k_means(features, 9, generator=_generator())
    monkeypatch.setattr("lcmat.selection.kmeans.BLOCK", block)
    assert k_means(features, 9, generator=_generator()).owner.equal(whole.owner)


def test_prototypes_are_the_members_nearest_to_their_centres_and_weigh_their_clusters() -> None:
    features = _blobs(90, 4, 3, seed=0)[torch.randperm(90, generator=_generator())]
    signals = Signals(features=features)
    subset = lcmat.select(signals, "prototypes", count=3)
    distances = torch.cdist(features, features[subset.indices])
    owner = distances.argmin(1)
    assert subset.weights.tolist() == pytest.approx(torch.bincount(owner, minlength=3).double().tolist())
    for cluster, pick in enumerate(subset):
        members = (owner == cluster).nonzero().flatten()
        nearest = (features[members] - features[members].mean(0)).norm(dim=1).argmin()
        assert int(members[nearest]) == pick


@pytest.mark.parametrize("count", [1, 30, 119, 120])
@pytest.mark.parametrize("distinct", [2, 120])
def test_prototypes_are_distinct_also_when_most_samples_are_duplicates(count: int, distinct: int) -> None:
    features = _features(distinct)[torch.arange(120) % distinct]
    subset = lcmat.select(Signals(features=features), "prototypes", count=count)
    assert len(set(subset)) == count
    assert float(subset.weights.min()) >= 1


def test_far_more_prototypes_than_classes() -> None:
    features = _blobs(300, 5, 2, seed=3)
    signals = Signals(features=features, labels=torch.arange(300) % 2)
    covered = torch.cdist(features, features[lcmat.select(signals, "prototypes", count=100).indices]).min(1).values
    drawn = torch.cdist(features, features[lcmat.select(signals, "uniform", count=100).indices]).min(1).values
    assert float(covered.square().sum()) < 0.8 * float(drawn.square().sum())


def test_prototypes_refuse_no_rounds() -> None:
    with pytest.raises(ValueError, match="expected iterations of 1 or more, got 0"):
        lcmat.select(Signals(features=_features(9)), "prototypes", count=3, iterations=0)
    with pytest.raises(ValueError, match="1 to 9 clusters of 9 samples, got 10"):
        k_means(_features(9), 10, generator=_generator())
