from typing import Any

import numpy as np
import pytest
import torch

from lcmat.types import Record, Signals

LOGITS = torch.tensor([[2.0, -1.0], [0.5, 0.0], [-3.0, 1.0]])
LABELS = torch.tensor([0, 1, 1])


def make_record(n: int = 3) -> Record:
    return Record(torch.ones(2, n, dtype=torch.bool), torch.full((2, n), 0.5))


def test_numpy_and_torch_are_the_same() -> None:
    a = Signals(np.ones((3, 4)), LOGITS.numpy(), LABELS.numpy())
    b = Signals(torch.ones(3, 4, dtype=torch.float64), LOGITS, LABELS.int())
    assert a.features is not None
    assert b.features is not None
    assert torch.equal(a.features, b.features)
    assert a.need("labels").dtype == b.need("labels").dtype == torch.int64
    assert a.n == 3
    assert a.device == torch.device("cpu")


def test_residuals_are_the_gradient_of_the_loss_in_the_logits() -> None:
    logits = LOGITS.double().requires_grad_()
    loss = torch.nn.functional.cross_entropy(logits, LABELS, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, logits)
    torch.testing.assert_close(Signals(logits=LOGITS, labels=LABELS).residuals, gradient, atol=1e-12, rtol=0)


def test_real_valued_labels_have_residuals_but_no_probabilities() -> None:
    signals = Signals(logits=torch.tensor([[2.0], [1.0]]), labels=torch.tensor([0.5, 3.0]))
    assert signals.residuals.tolist() == [[1.5], [-2.0]]
    with pytest.raises(ValueError, match="real-valued labels have no class probabilities"):
        _ = signals.probabilities


def test_confident_samples_keep_their_digits() -> None:
    residuals = Signals(logits=torch.tensor([[30.0, 0.0]]), labels=torch.tensor([0])).residuals
    assert residuals[0, 0].item() == pytest.approx(-float(torch.exp(torch.tensor(-30.0))), rel=1e-3)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "expected features, logits or labels, got none"),
        ({"features": torch.ones(3)}, "expected features as a matrix"),
        ({"features": torch.ones(3, 0)}, "expected features as a matrix"),
        ({"features": torch.ones(0, 2)}, "the data is empty"),
        ({"features": torch.ones(3, 2), "labels": torch.tensor([0, 1])}, "got 3 features, 2 labels"),
        ({"features": torch.tensor([[1.0], [float("inf")]])}, "NaN or infinity in 1 of 2 rows, the first at row 1"),
        ({"logits": torch.tensor([[float("nan"), 0.0]])}, "expected finite logits"),
        ({"labels": torch.tensor([1.0, float("nan")])}, "expected finite labels"),
        ({"labels": torch.ones(3, dtype=torch.bool)}, "expected labels as class indices or real numbers"),
        ({"logits": LOGITS, "labels": torch.ones(3)}, "one prediction for each real-valued label, got 2 columns"),
        ({"labels": torch.ones(3, 1, dtype=torch.int64)}, "expected labels as a vector"),
        ({"logits": LOGITS, "labels": torch.tensor([0, 1, 2])}, "one for each of the 2 logits, got 0 to 2"),
        ({"logits": LOGITS, "record": make_record(4)}, "the record is of 4 samples, the Signals of 3"),
    ],
)
def test_impossible_signals_cannot_be_made(parts: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Signals(**parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [np.array(["cat", "dog"]), ["cat", "dog"], np.array(["cat", None])])
def test_labels_of_text_are_refused_with_a_way_out(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"class indices or real numbers, got text or objects; .*np\.unique"):
        Signals(labels=labels)


def test_probabilities_given_as_logits_are_noticed() -> None:
    with pytest.warns(UserWarning, match="the logits look like probabilities"):
        Signals(logits=torch.softmax(LOGITS, 1))
    Signals(logits=torch.ones(3, 1))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_probabilities_of_half_precision_are_noticed_too(kind: torch.dtype) -> None:
    draws = torch.randn(50, 100, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match="the logits look like probabilities"):
        Signals(logits=torch.softmax(draws, 1).to(kind))


def test_signals_are_shown_in_a_line() -> None:
    signals = Signals(torch.zeros(3, 2), LOGITS, LABELS)
    assert repr(signals) == "Signals: features [3, 2], logits [3, 2], labels [3]"
    assert repr(Signals(features=torch.zeros(3, 2), validation=signals)) == "Signals: features [3, 2], validation"


def test_a_missing_part_is_named() -> None:
    with pytest.raises(ValueError, match=r"this method needs features, which .*give Signals\(features=\.\.\.\)"):
        Signals(logits=LOGITS).need("features")


def test_temperature_divides_the_logits() -> None:
    signals = Signals(logits=LOGITS, labels=LABELS)
    assert torch.equal(signals.tempered(4.0).need("logits"), LOGITS / 4)
    assert signals.tempered(1.0) is signals
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="expected a temperature above 0"):
            signals.tempered(wrong)


def test_rows_taken_go_through_every_part() -> None:
    record = Record(torch.tensor([[True, False, True]]), torch.tensor([[0.1, 0.2, 0.3]]))
    whole = Signals(torch.arange(6.0).reshape(3, 2), LOGITS, LABELS, record=record, class_names=("a", "b"))
    part = whole.take(torch.tensor([2, 1]))
    assert part.need("features").tolist() == [[4.0, 5.0], [2.0, 3.0]]
    assert torch.equal(part.need("logits"), LOGITS[[2, 1]])
    assert part.need("labels").tolist() == [1, 1]
    assert part.record is not None
    assert part.record.correct.tolist() == [[True, False]]
    assert part.class_names == ("a", "b")
    assert part.to("cpu").n == 2


def test_impossible_records_cannot_be_made() -> None:
    with pytest.raises(ValueError, match=r"expected a record of shape \[epochs, n\], correct as bool, got torch.int64"):
        Record(torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"probabilities of shape \[2, 4\]"):
        Record(torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 4))
    with pytest.raises(ValueError, match="expected finite probability"):
        Record(torch.ones(1, 2, dtype=torch.bool), torch.tensor([[0.5, float("nan")]]))
