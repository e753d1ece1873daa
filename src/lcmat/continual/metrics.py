"""What a sequence of accuracies says of learning and forgetting: pure functions of the accuracy matrix.

The matrix A has a row for each step: A[t][j] is the accuracy after step t on the test samples of the classes of step
j ≤ t; a row ends at its own step.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import TypeAlias

Matrix: TypeAlias = Sequence[Sequence[float]]


def average_accuracy(accuracies: Sequence[float]) -> float:
    """The mean of the accuracies after each step, each over all classes seen by then (Rebuffi et al., CVPR 2017).

    Example:
        >>> round(average_accuracy([0.9, 0.6, 0.3]), 3)
        0.6
    """
    return fmean(accuracies)


def forgetting(matrix: Matrix) -> float:
    """How far the accuracies of earlier steps have fallen from their best (Chaudhry et al., ECCV 2018).

        F = 1/(T − 1) · Σ_{j<T} ( max_{j ≤ t < T} A[t][j] − A[T][j] )

    after the last of T steps; 0 for a single step. It is negative where later steps helped.

    Example:
        >>> round(forgetting([[0.9], [0.7, 0.8], [0.5, 0.6, 0.9]]), 3)
        0.3
    """
    check_matrix(matrix)
    last = len(matrix) - 1
    if last == 0:
        return 0.0
    return fmean(max(matrix[t][j] for t in range(j, last)) - matrix[last][j] for j in range(last))


def check_matrix(matrix: Matrix) -> None:
    """Refuse what is no lower triangle of accuracies."""
    if not matrix or any(len(row) != number + 1 for number, row in enumerate(matrix)):
        raise ValueError(
            f"expected a row for each step with an accuracy for each step so far, got rows of {list(map(len, matrix))}"
        )
