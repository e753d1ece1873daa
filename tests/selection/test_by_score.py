import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

import lcmat
from lcmat.networks import build
from lcmat.selection import SELECTORS
from lcmat.selection.ranking import keep_highest
from lcmat.types import Record, Signals
from reference import made_up_signals, per_sample_gradients
from samples import vectors


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _record(n: int = 40, epochs: int = 12, seed: int = 0) -> Record:
    probability = torch.rand(epochs, n, generator=_generator(seed))
    correct = probability > 0.5
    correct[:, :3] = False  # never learnt
    return Record(correct, probability)


def _scores(method: str, points: list[Signals]) -> list[float]:
    """The score of every sample, in the order of the samples."""
    picks = SELECTORS.find(method).function(points, points[0].n, generator=_generator())
    assert picks.gains is not None
    return picks.gains[picks.order.argsort()].tolist()


def _softmax(row: list[float]) -> list[float]:
    exponentials = [math.exp(value - max(row)) for value in row]
    return [value / sum(exponentials) for value in exponentials]


def _slow_score(method: str, signals: Signals) -> list[float]:
    """The definitions, one sample at a time, in plain Python."""
    scores = []
    for i in range(signals.n):
        p = _softmax(signals.need("logits")[i].tolist())
        ranked = sorted(p, reverse=True)
        label = int(signals.need("labels")[i])
        error = math.sqrt(sum((value - (c == label)) ** 2 for c, value in enumerate(p)))
        length = math.sqrt(sum(value**2 for value in signals.need("features")[i].tolist()) + signals.bias)
        scores.append(
            {
                "least-confidence": 1 - ranked[0],
                "entropy": -sum(value * math.log(value) for value in p),
                "margin": 1 - (ranked[0] - ranked[1]),
                "el2n": error,
                "grand": error * length,
            }[method]
        )
    return scores


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("method", ["least-confidence", "entropy", "margin", "el2n", "grand"])
def test_a_score_is_its_definition_and_the_highest_are_kept_in_order(method: str, bias: bool) -> None:
    signals, _ = made_up_signals(bias=bias)
    slow = _slow_score(method, signals)
    assert _scores(method, [signals]) == pytest.approx(slow, abs=1e-12)
    subset = lcmat.select(signals, method, count=7, balance="none")
    assert list(subset) == sorted(range(signals.n), key=lambda i: -slow[i])[:7]
    assert subset.gains is not None
    assert subset.gains.tolist() == pytest.approx(sorted(slow, reverse=True)[:7])


def test_grand_is_the_norm_of_the_gradient_that_automatic_differentiation_gives() -> None:
    signals, weights = made_up_signals(n=23)
    norms = per_sample_gradients(signals, weights).norm(dim=1)
    assert _scores("grand", [signals]) == pytest.approx(norms.tolist())


@pytest.mark.parametrize("method", ["grand", "el2n"])
def test_scores_of_several_points_are_averaged(method: str) -> None:
    first, _ = made_up_signals(seed=0)
    second = replace(first, logits=made_up_signals(seed=1)[0].logits)
    average = [(a + b) / 2 for a, b in zip(_scores(method, [first]), _scores(method, [second]), strict=True)]
    assert _scores(method, [first, second]) == pytest.approx(average)


@pytest.mark.parametrize("method", ["least-confidence", "margin", "entropy"])
def test_confident_samples_keep_their_order(method: str) -> None:
    # In the difference 1 − p these would all be 0.
    gaps = torch.tensor([60.0, 45.0, 50.0, 40.0], dtype=torch.float64)
    signals = Signals(logits=torch.stack([gaps, torch.zeros(4, dtype=torch.float64)], 1))
    assert list(lcmat.select(signals, method, count=4)) == [3, 1, 2, 0]


@pytest.mark.parametrize("balance", ["equal", "proportional", "none"])
@pytest.mark.parametrize("method", ["least-confidence", "entropy", "margin", "el2n", "grand"])
def test_the_direction_is_the_same_per_class_and_over_all(method: str, balance: str) -> None:
    signals, _ = made_up_signals(n=200)
    kept = lcmat.select(signals, method, count=40, balance=balance)
    scores, labels = torch.tensor(_scores(method, [signals])), signals.need("labels")
    left = torch.ones(200, dtype=torch.bool)
    left[kept.indices] = False
    for group in [torch.ones(200, dtype=torch.bool)] if balance == "none" else [labels == c for c in range(4)]:
        assert float(scores[group & ~left].min()) >= float(scores[group & left].max())


def test_the_batch_size_of_the_extraction_picks_nothing() -> None:
    data = vectors(101)
    net = build("mlp", data, seed=0)
    small, whole = (lcmat.extract(net, data, batch_size=size, device="cpu") for size in (7, 1000))
    for method in ("grand", "el2n", "entropy"):
        torch.testing.assert_close(
            torch.tensor(_scores(method, [small])), torch.tensor(_scores(method, [whole])), rtol=1e-5, atol=1e-9
        )
    # The last batch of 3 of a mean loss would count 7/3 as much.
    last = set(range(98, 101))
    picks = set(lcmat.select(small, "grand", count=10, balance="none"))
    assert picks == set(lcmat.select(whole, "grand", count=10, balance="none"))
    assert not last <= picks


def _slow_forgetting(record: Record) -> list[int]:
    counts = []
    for i in range(record.correct.shape[1]):
        history = record.correct[:, i].tolist()
        events = sum(was and not now for was, now in pairwise(history))
        counts.append(events if any(history) else len(history))
    return counts


def test_forgetting_counts_falls_from_right_to_wrong_and_ranks_the_never_learnt_first() -> None:
    record = _record()
    signals = Signals(labels=torch.zeros(40, dtype=torch.int64), record=record)
    slow = _slow_forgetting(record)
    assert _scores("forgetting", [signals]) == slow
    assert set(lcmat.select(signals, "forgetting", count=3)) == {0, 1, 2}
    assert max(slow[3:]) <= 6


def test_forgetting_sums_several_trainings() -> None:
    labels = torch.zeros(40, dtype=torch.int64)
    points = [Signals(labels=labels, record=_record(seed=seed)) for seed in (0, 1)]
    sums = [sum(pair) for pair in zip(*(_slow_forgetting(_record(seed=seed)) for seed in (0, 1)), strict=True)]
    assert _scores("forgetting", points) == sums


def test_forgetting_without_a_record_says_what_to_do() -> None:
    signals = made_up_signals()[0]
    with pytest.raises(ValueError, match="forgetting needs the per-epoch record: train with record=True"):
        lcmat.select(signals, "forgetting", count=3)


def _tied(n: int = 300) -> Signals:
    """Samples of which none was ever forgotten."""
    record = Record(torch.ones(5, n, dtype=torch.bool), torch.ones(5, n))
    return Signals(labels=torch.zeros(n, dtype=torch.int64), record=record)


def test_ties_fall_by_the_seed_and_not_by_the_order_of_the_data() -> None:
    signals = _tied()
    draws = [list(lcmat.select(signals, "forgetting", count=30, seed=seed)) for seed in range(40)]
    assert len({tuple(draw) for draw in draws}) == 40
    assert draws[0] == list(lcmat.select(signals, "forgetting", count=30, seed=0))
    positions = torch.tensor(draws, dtype=torch.float64)
    # The mean of 1200 fair draws from 0 … 299 lies within 4 standard errors of 149.5; of the first 30 it is 14.5.
    assert abs(float(positions.mean()) - 149.5) < 4 * 86.6 / math.sqrt(1200)


def test_some_forgotten_samples_come_before_all_ties() -> None:
    signals = _tied(100)
    assert signals.record is not None
    correct = signals.record.correct.clone()
    correct[2, 77] = False
    forgotten = replace(signals, record=Record(correct, signals.record.probability))
    for seed in range(5):
        assert lcmat.select(forgotten, "forgetting", count=10, seed=seed)[0] == 77


def test_real_valued_labels_are_scored_by_their_residual() -> None:
    labels = torch.tensor([0.0, 1.0, 2.0, 3.0])
    predictions = torch.tensor([[0.5], [1.0], [-1.0], [3.1]])
    signals = Signals(features=torch.ones(4, 2), logits=predictions, labels=labels)
    assert _scores("el2n", [signals]) == pytest.approx([0.5, 0.0, 3.0, 0.1], abs=1e-6)
    assert _scores("grand", [signals]) == pytest.approx([value * math.sqrt(3) for value in (0.5, 0, 3, 0.1)], abs=1e-6)
    with pytest.raises(ValueError, match="entropy"):
        lcmat.select(signals, "entropy", count=2)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite scores"):
        keep_highest(torch.tensor([0.0, bad]), 1, generator=_generator())


def test_keep_highest_returns_scores_in_pick_order() -> None:
    scores: Tensor = torch.tensor([1, 5, 5, 3])
    picks = keep_highest(scores, 3, generator=_generator())
    assert picks.gains is not None
    assert picks.gains.tolist() == [5.0, 5.0, 3.0]
    assert set(picks.order[:2].tolist()) == {1, 2}
