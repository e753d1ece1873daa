"""Picks one after the other, and functions that a GPU replays."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from lcmat.selection.course import WORTH, Replayed, pick_repeatedly
from lcmat.selection.ties import Picker, Ties


class _Falling:
    """Values that fall around each pick."""

    def __init__(self, n: int, device: str = "cpu") -> None:
        generator = torch.Generator().manual_seed(0)
        self.values = torch.randint(0, 50, (n,), generator=generator).double().to(device)
        self.places = torch.arange(n, device=device)
        self.picker = Picker(Ties(n, generator, self.places.device), given=torch.tensor([4, 1], device=device))

    def take(self, pick: Tensor) -> None:
        self.values.sub_((20 - (self.places - pick).abs()).clamp_(min=0))

    def run(self, count: int) -> tuple[list[int], list[float]]:
        order, found = pick_repeatedly(lambda: self.values, self.take, count, self.picker)
        return order.tolist(), found.tolist()


def test_given_samples_come_first_and_then_the_best_that_is_left() -> None:
    one = _Falling(60)
    values, expected, found = one.values.clone(), [4, 1], []
    for t in range(60):
        if t >= 2:
            left = values.clone()
            left[expected] = -torch.inf
            ties = {int(i) for i in (left == left.max()).nonzero()}
            expected.append(next(int(i) for i in one.picker.ties.permutation if int(i) in ties))
        found.append(float(values[expected[t]]))
        values -= (20 - (torch.arange(60) - expected[t]).abs()).clamp(min=0)
    assert one.run(60) == (expected, found)
    assert _Falling(60).run(1) == (expected[:1], found[:1])


def test_a_processor_calls_the_function_itself() -> None:
    calls: list[int] = []
    replayed = Replayed(lambda: calls.append(1), torch.device("cpu"), 100)
    for _ in range(5):
        replayed()
    assert len(calls) == 5


def test_each_thread_has_one_side_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # What another thread started on the same one would become part of a capture, and be computed too late or never.
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: object())
    both = threading.Barrier(2)

    def streams(_: object) -> list[object]:
        both.wait()
        return [Replayed(lambda: None, torch.device("cuda", 0), WORTH)._stream for _ in range(2)]

    with ThreadPoolExecutor(2) as threads:
        (first, second), (third, fourth) = threads.map(streams, range(2))
    assert first is second
    assert third is fourth
    assert first is not third


@pytest.mark.gpu
def test_threads_make_the_picks_of_one() -> None:
    truth = _Falling(300).run(200)
    with ThreadPoolExecutor(4) as threads:
        assert all(found == truth for found in threads.map(lambda _: _Falling(300, "cuda").run(200), range(16)))


@pytest.mark.gpu
@pytest.mark.parametrize("times", [2, WORTH, 100])
def test_a_gpu_replays_what_it_did_once(times: int) -> None:
    calls: list[int] = []
    total = torch.zeros(1, device="cuda")

    def function() -> None:
        calls.append(1)
        total.mul_(2).add_(1)
        total.remainder_(1009)

    replayed = Replayed(function, total.device, times)
    truth = 0
    for _ in range(times):
        replayed()
        truth = (2 * truth + 1) % 1009
    assert float(total) == truth
    assert len(calls) == (2 if times >= WORTH else times)


@pytest.mark.gpu
def test_a_gpu_makes_the_picks_of_a_processor() -> None:
    assert _Falling(300, "cuda").run(200) == _Falling(300).run(200)


@pytest.mark.gpu
def test_what_cannot_be_captured_is_called_and_it_is_said() -> None:
    total = torch.zeros(1, device="cuda")

    def waits() -> None:
        total.add_(float(total) + 1)

    replayed = Replayed(waits, total.device, WORTH)
    replayed()
    with pytest.warns(UserWarning, match="without a CUDA graph"):
        replayed()
    assert float(total) == 3
