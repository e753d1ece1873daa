import pytest
import torch

from lcmat import runtime

CPU = torch.device("cpu")


def test_device_asked_for_or_found() -> None:
    assert runtime.pick_device("cpu") == CPU
    found = runtime.pick_device()
    assert found.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert runtime.pick_device("auto") == found


def test_impossible_devices_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="this machine has no CUDA device; use 'cpu'"):
        runtime.pick_device("cuda")
    with pytest.raises(ValueError, match=r"expected a device such as 'cpu'.*'gpu'"):
        runtime.pick_device("gpu")
    with pytest.raises(ValueError, match="lcmat works on 'cpu' and 'cuda', got 'meta'"):
        runtime.pick_device("meta")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=r"has 1 CUDA device\(s\)"):
        runtime.pick_device("cuda:1")


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("500 MB", 5 * 10**8), ("2g", 2 * 10**9), ("1KiB", 1024), (".5k", 500), ("7", 7), (8.0, 8)],
)
def test_amounts_of_memory(text: str | float, size: int) -> None:
    assert runtime.parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "4XB", "four", "1 2 GB"])
def test_no_amount_of_memory(text: str) -> None:
    with pytest.raises(ValueError, match="expected an amount of memory such as '4GB'"):
        runtime.parse_memory(text)


def test_budget_is_what_was_asked_for_or_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "free_memory", lambda device: 10)
    assert runtime.memory_budget(None, CPU) == 5
    assert runtime.memory_budget("3k", CPU) == 3_000


def test_a_container_limits_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime.free_memory(CPU) > 10**7
    monkeypatch.setattr(runtime, "_container_headroom", lambda: 12_345)
    assert runtime.free_memory(CPU) == 12_345


def test_peak_memory_grows_with_what_is_used() -> None:
    before = runtime.peak_memory_mb()
    block = torch.ones(int(before * 1e6) + 50_000_000, dtype=torch.uint8)
    assert runtime.peak_memory_mb() > before
    assert block[0] == 1


def test_one_thread_inside_and_as_many_as_before_outside() -> None:
    torch.set_num_threads(3)
    try:
        with runtime.one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)


def test_versions_say_what_ran_where() -> None:
    assert set(runtime.versions()) == {"lcmat", "python", "torch", "machine"}
    assert "cores" in runtime.machine()
