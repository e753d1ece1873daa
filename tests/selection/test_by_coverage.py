import math
import statistics

import pytest
import torch

import lcmat
from lcmat.selection import SELECTORS
from lcmat.selection.by_coverage import _draw, _strata
from lcmat.types import Record, Signals
from reference import made_up_signals


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _el2n(signals: Signals) -> torch.Tensor:
    norms: torch.Tensor = signals.residuals.norm(dim=1)
    return norms


def _paper_budgets(sizes: list[int], total: int) -> list[int]:
    """The paper's Algorithm 1: again and again the smallest stratum left gives its share of what is left, or all."""
    budgets = [0] * len(sizes)
    left = total
    remaining = sorted(range(len(sizes)), key=lambda stratum: sizes[stratum])
    while remaining:
        stratum, count = remaining[0], len(remaining)
        budgets[stratum] = min(sizes[stratum], left // count)
        left -= budgets[stratum]
        remaining.pop(0)
    return budgets


@pytest.mark.parametrize("total", [1, 3, 7, 20, 41, 99, 100])
@pytest.mark.parametrize("seed", range(4))
def test_the_budget_is_spread_over_the_strata_as_in_the_paper_and_sums_exactly(total: int, seed: int) -> None:
    strata = (torch.rand(100, generator=_generator(seed)).square() * 8).long()
    sizes = torch.bincount(strata).tolist()
    chosen = _draw(strata, total)
    assert len(set(chosen.tolist())) == total
    drawn = torch.bincount(strata[chosen], minlength=len(sizes)).tolist()
    # Strata of one size are the same to the paper: which of them gives the odd sample is open.
    expected = _paper_budgets([size for size in sizes if size > 0], total)
    assert sorted(zip([s for s in sizes if s > 0], expected, strict=True)) == sorted(
        (size, amount) for size, amount in zip(sizes, drawn, strict=True) if size > 0
    )


def test_every_beginning_takes_the_strata_in_turn() -> None:
    strata = torch.tensor([0] * 10 + [1] * 10 + [2] * 10)
    chosen = strata[_draw(strata, 9)].tolist()
    assert [sorted(chosen[start : start + 3]) for start in (0, 3, 6)] == [[0, 1, 2]] * 3


def test_strata_have_equal_width() -> None:
    scores = torch.tensor([-1.0, -0.51, -0.49, 0.49, 0.5, 1.0], dtype=torch.float64)
    assert _strata(scores, 4).tolist() == [0, 0, 1, 2, 3, 3]
    assert _strata(torch.ones(3, dtype=torch.float64), 4).tolist() == [0, 0, 0]


def test_ccs_cuts_off_the_highest_share_and_covers_the_rest() -> None:
    signals, _ = made_up_signals(n=400)
    scores = _el2n(signals)
    subset = lcmat.select(signals, "ccs", count=50, cutoff=0.25, strata=10, balance="none")
    allowed = scores.sort().values[300 - 1]
    kept = scores[subset.indices]
    assert kept.max() <= allowed
    inside = scores[scores <= allowed]
    of = _strata(torch.cat([inside, kept]), 10)
    sizes, drawn = (torch.bincount(part, minlength=10).tolist() for part in (of[: len(inside)], of[len(inside) :]))
    assert sorted(zip(sizes, drawn, strict=True)) == sorted(zip(sizes, _paper_budgets(sizes, 50), strict=True))
    assert subset.gains is not None
    torch.testing.assert_close(subset.gains, kept)


@pytest.mark.parametrize("balance", ["equal", "proportional", "none"])
@pytest.mark.parametrize("count", [1, 13, 250, 399, 400])
def test_every_class_has_its_own_budget_and_the_cut_leaves_enough(count: int, balance: str) -> None:
    # Classes of unequal size: with the last one's budget for all, the sum would be another.
    signals, _ = made_up_signals(n=400)
    labels = torch.tensor([0] * 250 + [1] * 100 + [2] * 40 + [3] * 10)
    unequal = Signals(features=signals.features, logits=signals.logits, labels=labels)
    subset = lcmat.select(unequal, "ccs", count=count, balance=balance, cutoff=0.9)
    assert len(set(subset)) == count
    if balance == "proportional" and count == 250:
        assert subset.per_class == (156, 63, 25, 6)


def test_ccs_draws_at_random_within_a_stratum() -> None:
    signals, _ = made_up_signals(n=200)
    draws = {tuple(lcmat.select(signals, "ccs", count=20, seed=seed)) for seed in range(8)}
    assert len(draws) == 8


def test_ccs_wraps_any_score_and_needs_what_it_needs() -> None:
    probability = torch.rand(6, 60, generator=_generator())
    signals = Signals(labels=torch.zeros(60, dtype=torch.int64), record=Record(probability > 0.4, probability))
    assert len(lcmat.select(signals, "ccs", count=9, score="forgetting")) == 9
    logits = Signals(logits=torch.randn(60, 3, generator=_generator()))
    assert len(lcmat.select(logits, "ccs", count=9, score="entropy")) == 9
    with pytest.raises(ValueError, match="labels"):
        lcmat.select(logits, "ccs", count=9)
    with pytest.raises(ValueError, match="record"):
        lcmat.select(logits, "ccs", count=9, score="forgetting")
    with pytest.raises(ValueError, match="takes the Signals of one point"):
        lcmat.select([logits, logits], "ccs", count=9, score="entropy")


@pytest.mark.parametrize("score", [entry.name for entry in SELECTORS if entry.facts.score])
def test_ccs_of_each_score(score: str) -> None:
    signals, _ = made_up_signals(n=60)
    probability = torch.rand(6, 60, generator=_generator())
    whole = Signals(
        features=signals.features,
        logits=signals.logits,
        labels=signals.labels,
        record=Record(probability > 0.4, probability),
    )
    assert len(set(lcmat.select(whole, "ccs", count=17, score=score))) == 17


def test_bad_options_of_ccs() -> None:
    signals, _ = made_up_signals()
    with pytest.raises(ValueError, match=r"expected score as one of .*entropy.*, got 'herding'"):
        lcmat.select(signals, "ccs", count=3, score="herding")
    with pytest.raises(ValueError, match=r"expected a cutoff of at least 0 and below 1, got 1\.0"):
        lcmat.select(signals, "ccs", count=3, cutoff=1.0)
    with pytest.raises(ValueError, match="expected strata of 1 or more, got 0"):
        lcmat.select(signals, "ccs", count=3, strata=0)
    with pytest.raises(TypeError, match="score"):
        lcmat.select(signals, "ccs", count=3, score=3)


@pytest.mark.parametrize("n", [40, 41])
@pytest.mark.parametrize("balance", ["proportional", "none"])
def test_moderate_is_its_definition(n: int, balance: str) -> None:
    signals, _ = made_up_signals(n=n, classes=3)
    features, labels = signals.need("features"), signals.need("labels").tolist()
    distances = []
    for i in range(n):
        own = [features[j] for j in range(n) if labels[j] == labels[i]]
        centre = sum(own, torch.zeros(6, dtype=torch.float64)) / len(own)
        distances.append(float((features[i] - centre).norm()))
    groups = [list(range(n))] if balance == "none" else [[i for i in range(n) if labels[i] == c] for c in range(3)]
    subset = lcmat.select(signals, "moderate", count=12, balance=balance)
    for group in groups:
        median = statistics.median(distances[i] for i in group)
        ranked = sorted(group, key=lambda i: abs(distances[i] - median))
        picked = [i for i in subset if i in group]
        assert picked == ranked[: len(picked)]


def _slow_cal(signals: Signals, k: int) -> list[float]:
    features = signals.need("features")
    probabilities = torch.softmax(signals.need("logits").double(), 1).tolist()
    scores = []
    for i in range(signals.n):
        others = sorted((float((features[i] - features[j]).norm()), j) for j in range(signals.n) if j != i)[:k]
        divergences = [
            sum(p * math.log(p / q) for p, q in zip(probabilities[j], probabilities[i], strict=True)) for _, j in others
        ]
        scores.append(sum(divergences) / len(divergences))
    return scores


@pytest.mark.parametrize("block", [2**24, 200])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_cal_is_its_definition(k: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcmat.selection.by_coverage.BLOCK", block)
    signals, _ = made_up_signals(n=31)
    slow = _slow_cal(signals, k)
    subset = lcmat.select(signals, "cal", count=31, neighbours=k, balance="none")
    assert subset.gains is not None
    assert subset.gains.tolist() == pytest.approx(sorted(slow, reverse=True))
    assert list(subset) == sorted(range(31), key=lambda i: -slow[i])


def test_cal_leaves_a_sample_out_of_its_own_neighbourhood_also_among_duplicates() -> None:
    features = torch.zeros(4, 2)
    logits = torch.tensor([[3.0, 0.0], [0.0, 3.0], [0.0, 3.0], [0.0, 3.0]])
    subset = lcmat.select(Signals(features=features, logits=logits), "cal", count=1, neighbours=3)
    # Sample 0 differs from all three others; counting itself would halve that, and sample 0 twice would not win.
    assert list(subset) == [0]


def test_bad_options_of_cal() -> None:
    with pytest.raises(ValueError, match="expected neighbours of 1 or more, got 0"):
        lcmat.select(made_up_signals()[0], "cal", count=3, neighbours=0)
