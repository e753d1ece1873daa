"""Kernels are used where they can be had and stand a check; where they cannot, that is said."""

import sys
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from lcmat import kernels
from lcmat.selection import differences, sweeps
from lcmat.selection.greedy import _kernels_for

NAME = "lcmat.selection.fused_sweeps"


def _unchecked(_: ModuleType) -> None:
    raise AssertionError("there is nothing to check")


def test_without_triton_there_are_no_kernels_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernels.tried(NAME, _unchecked, doing="selecting") is None


def test_a_triton_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> ModuleType:
        raise ImportError("libtriton.so: cannot open shared object file", name="triton._C.libtriton")

    monkeypatch.setattr(kernels, "import_module", broken)
    with pytest.warns(UserWarning, match=r"^selecting without the kernels in Triton, .*: libtriton.so: cannot open"):
        assert kernels.tried(NAME, _unchecked, doing="selecting") is None


def test_a_check_can_differentiate_whoever_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("some")

    def check(_: ModuleType) -> None:
        with torch.enable_grad():
            weight = torch.ones(2, requires_grad=True)
            torch.autograd.grad((weight * weight).sum(), [weight])

    monkeypatch.setattr(kernels, "import_module", lambda name: module)
    with torch.inference_mode():
        assert kernels.tried(NAME, check, doing="training") is module


def test_kernels_are_checked_on_the_device_that_is_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    second = torch.device("cuda", 1)
    checked: list[Any] = []

    def tried(name: str, check: Any, *, doing: str) -> Any:
        module = SimpleNamespace(step=None, distances=lambda left, right, *, power: name)
        check(module)
        return module

    monkeypatch.setattr(kernels, "tried", tried)
    for module in (sweeps, differences):
        monkeypatch.setattr(module, "_compare", lambda own, device: checked.append(device))
    for cached in (sweeps.sweeping_kernels, differences._kernels):
        cached.cache_clear()
    distances: Any = SimpleNamespace(device=second, n=10)
    assert _kernels_for(distances) is not None

    class Left:
        device = second

        def __len__(self) -> int:
            return 100

    left: Any = Left()
    assert differences.direct_distances(left, left, power=1) == "lcmat.selection.fused_differences"
    assert checked == [second, second]
    for cached in (sweeps.sweeping_kernels, differences._kernels):
        cached.cache_clear()
