"""No greedy method waits for the device at every pick: on a GPU that would cost more than the arithmetic."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import lcmat
from lcmat.selection import SELECTORS
from lcmat.selection.by_pursuit import gradmatch
from lcmat.selection.distances import Divergences, Euclidean, Unmeasured, from_matrix
from lcmat.selection.farthest import farthest_first
from lcmat.selection.nonnegative import GrowingRegression
from lcmat.selection.ties import Ties
from lcmat.types import Picks, Signals
from reference import made_up_signals

# What a device must have finished before Python goes on: a number is read, or the size of a result is not known before.
WAITS = {"_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "_unique2", "unique_dim", "bincount"}
SLACK = 2  # whatever the number of picks


class _Waits(TorchDispatchMode):
    """Counts the operations that would wait for a device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in WAITS:
            self.found[name] += 1
        return func(*args, **(kwargs or {}))


def _signals() -> Signals:
    return made_up_signals(n=120, classes=4, d=6)[0]


def _waits(method: str, count: int) -> Counter[str]:
    waits = _Waits()
    with waits:
        lcmat.select(_signals(), method, count=count, balance="none")
    return waits.found


@pytest.mark.parametrize("method", ["herding", "contextual-diversity", "graph-cut", "log-determinant", "glister"])
def test_more_picks_are_not_more_waits(method: str) -> None:
    few, many = _waits(method, 10), _waits(method, 60)
    assert sum(many.values()) <= sum(few.values()) + SLACK, many - few


def test_farthest_first_waits_for_no_pick() -> None:
    features = _signals().need("features")
    rows = from_matrix(torch.cdist(features, features))
    found = []
    for count in (10, 60):
        ties = Ties(120, torch.Generator().manual_seed(0), torch.device("cpu"))
        with _Waits() as waits:
            farthest_first(rows, count, first=3, ties=ties)
        found.append(sum(waits.found.values()))
    assert found[1] <= found[0] + SLACK


class _Operations(TorchDispatchMode):
    """Counts all operations of torch."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def _match_gradients(count: int) -> None:
    gradmatch([_signals()], count, generator=torch.Generator().manual_seed(0), memory=10**8)


def test_gradient_matching_reads_no_number_but_from_memory_of_the_processor() -> None:
    # It waits for a pick once, until what the regression needs has arrived, and reads that without torch.
    found = []
    for count in (10, 60):
        with _Waits() as waits:
            _match_gradients(count)
        found.append(sum(waits.found.values()))
    assert found[1] <= found[0] + SLACK


def test_the_regression_of_gradient_matching_starts_few_operations() -> None:
    # Each takes the processor a microsecond or more to start, in which a GPU waits for the next weights.
    vectors = torch.randn(60, 80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kernel, goals = vectors @ vectors.T, (vectors @ vectors.sum(0)).tolist()
    rows = [row[: t + 1] for t, row in enumerate(kernel.unbind())]
    regression = GrowingRegression(60, 0.5)
    with _Operations() as operations:
        for products, goal in zip(rows, goals, strict=True):
            regression.add(products, goal)
    assert len(regression.support) > 50
    assert operations.count < 20 * 60


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Signals:
    """Signals on a device that computes shapes only, so that whoever reads a number from it fails."""
    for kind in (Signals, Picks):
        monkeypatch.setattr(kind, "__post_init__", lambda self: None)
    signals = _signals()
    features, logits, labels = (signals.need(name).to("meta") for name in ("features", "logits", "labels"))
    return Signals(features=features, logits=logits, labels=labels)


@pytest.mark.parametrize("given", [None, torch.zeros(2, dtype=torch.int64, device="meta")])
@pytest.mark.parametrize("method", ["herding", "graph-cut", "log-determinant", "glister"])
def test_all_picks_are_made_without_reading_one_number(unread: Signals, method: str, given: Tensor | None) -> None:
    function = SELECTORS.find(method).function
    picks = function((unread,), 9, generator=torch.Generator().manual_seed(0), given=given)
    assert picks.order.shape == picks.gains.shape == (9,)  # type: ignore[union-attr]
    assert picks.order.device == unread.device


@pytest.mark.parametrize("given", [None, torch.zeros(2, dtype=torch.int64, device="meta")])
def test_farthest_first_reads_no_number(unread: Signals, given: Tensor | None) -> None:
    for pairs in (Euclidean(unread.need("features")), Divergences(unread.need("logits"))):
        ties = Ties(unread.n, torch.Generator().manual_seed(0), unread.device)
        picks = farthest_first(Unmeasured(pairs, unread.device), 9, first=3, ties=ties, given=given)
        assert picks.order.device == unread.device
