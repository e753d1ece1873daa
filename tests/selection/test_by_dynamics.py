import statistics

import pytest
import torch

import lcmat
from lcmat.types import Record, Signals


def _signals(epochs: int = 14, n: int = 30, seed: int = 0) -> Signals:
    probability = torch.rand(epochs, n, generator=torch.Generator().manual_seed(seed))
    return Signals(labels=torch.zeros(n, dtype=torch.int64), record=Record(probability > 0.5, probability))


def _slow_dual(signals: Signals, window: int, epochs: int) -> list[float]:
    assert signals.record is not None
    scores = []
    for i in range(signals.n):
        history = signals.record.probability[:epochs, i].double().tolist()
        length = min(window, len(history))
        parts = [history[start : start + length] for start in range(len(history) - length + 1)]
        scores.append(statistics.mean((1 - statistics.mean(part)) * statistics.stdev(part) for part in parts))
    return scores


@pytest.mark.parametrize(("window", "epochs"), [(10, 30), (3, 8), (14, 14), (50, 14), (2, 2)])
def test_dual_is_its_definition(window: int, epochs: int) -> None:
    signals = _signals()
    slow = _slow_dual(signals, window, epochs)
    subset = lcmat.select(signals, "dual", count=9, window=window, epochs=epochs)
    assert list(subset) == sorted(range(signals.n), key=lambda i: -slow[i])[:9]
    assert subset.gains is not None
    assert subset.gains.tolist() == pytest.approx(sorted(slow, reverse=True)[:9])


def test_only_the_first_epochs_count() -> None:
    signals = _signals(epochs=40)
    early = lcmat.select(signals, "dual", count=9)
    assert signals.record is not None
    cut = Signals(labels=signals.labels, record=Record(signals.record.correct[:30], signals.record.probability[:30]))
    assert list(early) == list(lcmat.select(cut, "dual", count=9))
    assert list(early) != list(lcmat.select(signals, "dual", count=9, epochs=None))


def test_a_steady_sample_scores_nothing_and_a_wavering_difficult_one_most() -> None:
    steady, easy, difficult = [0.2] * 10, [0.8, 1.0] * 5, [0.1, 0.3] * 5
    probability = torch.tensor([steady, easy, difficult]).T.contiguous()
    signals = Signals(labels=torch.zeros(3, dtype=torch.int64), record=Record(probability > 0.5, probability))
    subset = lcmat.select(signals, "dual", count=3)
    assert list(subset) == [2, 1, 0]
    assert subset.gains is not None
    assert subset.gains[2] == pytest.approx(0, abs=1e-6)


def test_bad_input_says_what_to_do() -> None:
    signals = _signals()
    with pytest.raises(ValueError, match="window of 2 epochs or more, got 1"):
        lcmat.select(signals, "dual", count=3, window=1)
    with pytest.raises(ValueError, match="epochs of 2 or more"):
        lcmat.select(signals, "dual", count=3, epochs=1)
    with pytest.raises(ValueError, match="train longer with record=True"):
        lcmat.select(_signals(epochs=1), "dual", count=3)
    with pytest.raises(ValueError, match="dual needs the per-epoch record: train with record=True"):
        lcmat.select(Signals(labels=signals.labels), "dual", count=3)
