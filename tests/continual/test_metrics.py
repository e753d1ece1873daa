import pytest

from lcmat.continual.metrics import average_accuracy, check_matrix, forgetting


def test_against_matrices_worked_out_by_hand() -> None:
    # After step 3 the classes of step 1 are at 0.4 after 0.9 at best, those of step 2 at 0.7 after 0.8.
    matrix = [[0.9], [0.6, 0.8], [0.4, 0.7, 1.0]]
    assert forgetting(matrix) == pytest.approx((0.5 + 0.1) / 2)
    # The best need not be the first: step 1 was at 0.95 after step 2.
    assert forgetting([[0.9], [0.95, 0.8], [0.4, 0.7, 1.0]]) == pytest.approx((0.55 + 0.1) / 2)
    assert forgetting([[0.5], [0.7, 0.8]]) == pytest.approx(-0.2)
    assert forgetting([[0.3]]) == 0
    assert average_accuracy([1.0, 0.7, 0.4]) == pytest.approx(0.7)


@pytest.mark.parametrize("matrix", [[], [[0.1, 0.2]], [[0.1], [0.2]], [[0.1], [0.2, 0.3], [0.1]]])
def test_what_is_no_lower_triangle_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="an accuracy for each step so far"):
        check_matrix(matrix)
