"""The diagonal form against Hessian diagonals by automatic differentiation."""

import pytest
import torch

from lcmat.landscape.diagonal import EVERYTHING, diagonal_gap, diagonal_gaps, sorted_variances
from lcmat.linear_head import factors
from reference import hessian_diagonals, made_up_signals

ROWS = torch.tensor([1, 8, 13, 30])


def shares(n: int, rows: torch.Tensor | None = None) -> torch.Tensor:
    rows = torch.arange(n) if rows is None else rows
    found = torch.zeros(n, dtype=torch.float64)
    found[rows] = 1 / len(rows)
    return found


def test_the_largest_difference_and_its_place_among_the_variances() -> None:
    signals, weights = made_up_signals()
    lambdas = hessian_diagonals(signals, weights)
    difference = (lambdas.mean(0) - lambdas[ROWS].mean(0)).abs()
    variances = lambdas.var(0, correction=0)
    found = diagonal_gap(factors(signals), shares(40), shares(40, ROWS))
    assert found.largest == pytest.approx(float(difference.max()), rel=1e-9)
    best = int(difference.argmax())
    assert found.coordinate == divmod(best, 7)
    assert found.rank == 1 + int((variances > variances[best]).sum())
    assert found.coordinates == 28
    assert found.held_by(found.rank)
    assert not found.held_by(found.rank - 1)


def test_each_class_is_compared_with_itself() -> None:
    signals, weights = made_up_signals()
    labels = signals.need("labels").long()
    lambdas = hessian_diagonals(signals, weights)
    names = ("a", "b", "c", "d")
    found = {part.group: part for part in diagonal_gaps(factors(signals), shares(40), shares(40, ROWS), labels, names)}
    kept = labels[ROWS].unique().tolist()
    assert set(found) == {EVERYTHING, *(names[index] for index in kept)}
    for index in kept:
        of_t, of_s = lambdas[labels == index], lambdas[ROWS[labels[ROWS] == index]]
        truth = float((of_t.mean(0) - of_s.mean(0)).abs().max())
        assert found[names[index]].largest == pytest.approx(truth, rel=1e-9)


def test_sorted_variances_are_those_of_t_alone() -> None:
    signals, weights = made_up_signals()
    rows = torch.arange(0, 40, 2)
    values, by_coordinate = sorted_variances(factors(signals), shares(40, rows))
    truth = hessian_diagonals(signals, weights)[rows].var(0, correction=0)
    torch.testing.assert_close(by_coordinate.flatten(), truth, atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(values, truth.sort(descending=True).values, atol=1e-12, rtol=1e-9)


def test_everything_against_itself_differs_nowhere() -> None:
    signals, _ = made_up_signals()
    assert diagonal_gap(factors(signals), shares(40), shares(40)).largest == 0
