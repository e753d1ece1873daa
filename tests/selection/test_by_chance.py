import torch

import lcmat
from lcmat.types import Signals


def test_every_sample_is_as_likely_as_any_other() -> None:
    # Sorted by class, as data sets often are: the first samples of a class must not be favoured.
    signals = Signals(labels=torch.arange(60) // 20)
    draws = torch.zeros(60)
    runs = 900
    for seed in range(runs):
        draws[lcmat.select(signals, "uniform", count=15, seed=seed).indices] += 1
    share = 15 / 60
    deviations = (draws - runs * share) / (runs * share * (1 - share)) ** 0.5
    assert float(deviations.abs().max()) < 4.5
    # Chi-squared of 57 degrees of freedom (60 less one for each class): within four standard deviations of its mean.
    # Of the 20 samples of a class always 5 are drawn, which makes the deviations 19/20 of those of free draws.
    assert abs(float(deviations.square().sum()) * 19 / 20 - 57) < 4 * (2 * 57) ** 0.5
