"""The machine: device, free memory, memory budgets, versions. Read here, nowhere else."""

import os
import platform
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

import lcmat.version

Item = TypeVar("Item")
Result = TypeVar("Result")

_SHARE: ContextVar[int | None] = ContextVar("_SHARE", default=None)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def pick_device(device: torch.device | str | None = None) -> torch.device:
    """The device to work on: the one asked for, else the first CUDA device, else the CPU.

    Raises:
        ValueError: for a device that this machine does not have.
    """
    if device is None or device == "auto":
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise ValueError(f"expected a device such as 'cpu', 'cuda' or 'cuda:1', got {device!r}") from None
    if chosen.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise ValueError(f"device {str(device)!r} was asked for, but this machine has no CUDA device; use 'cpu'")
        if (chosen.index or 0) >= count:
            raise ValueError(f"device {str(device)!r} was asked for, but this machine has {count} CUDA device(s)")
        return torch.device("cuda", chosen.index if chosen.index is not None else torch.cuda.current_device())
    if chosen.type != "cpu":
        raise ValueError(f"lcmat works on 'cpu' and 'cuda', got {str(device)!r}")
    return chosen


def parse_memory(text: str | int | float) -> int:
    """A number of bytes from '4GB', '500 MB', '2g' or a plain number.

    Example:
        >>> parse_memory("4GB"), parse_memory("0.5 GiB"), parse_memory(1000)
        (4000000000, 536870912, 1000)
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", str(text).lower())
    if match is None or (size := float(match[1])) <= 0:
        raise ValueError(f"expected an amount of memory such as '4GB' or '500MB', got {text!r}")
    unit = _UNITS[match[2]]
    if match[3]:
        unit = 1024 ** list(_UNITS.values()).index(unit)
    return int(size * unit)


def free_memory(device: torch.device) -> int:
    """Bytes that can still be allocated on the device without swapping."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free + cached)
    free = _available_main_memory()
    limit = _container_headroom()
    return free if limit is None else min(free, limit)


def memory_budget(memory: str | int | None, device: torch.device) -> int:
    """The bytes a computation may use: what was asked for, else its `memory_share`, else half of what is free now."""
    if memory is not None:
        return parse_memory(memory)
    share = _SHARE.get()
    return free_memory(device) // 2 if share is None else share


@contextmanager
def memory_share(size: int) -> Iterator[None]:
    """Let a computation inside the block use so many bytes where nothing is asked for, as others need the rest.

    Example:
        >>> with memory_share(1000):
        ...     memory_budget(None, torch.device("cpu")), memory_budget("2kB", torch.device("cpu"))
        (1000, 2000)
    """
    token = _SHARE.set(size)
    try:
        yield
    finally:
        _SHARE.reset(token)


def peak_memory_mb() -> float:
    """The largest resident size this process has had so far, in 10⁶ bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows has no such count
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one CPU thread inside the block.

    For small tensors a second thread gains nothing, and where other programs keep the cores busy the threads wait for
    each other: a hundred times slower was measured.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Workers:
    """Python threads that each compute with one torch thread, for work that falls into independent pieces.

    Torch's own threads meet after every operation, and where other programs keep the cores busy they mostly wait; these
    meet once a piece. Made by `workers`.
    """

    def __init__(self, number: int, pool: ThreadPoolExecutor | None) -> None:
        self.number, self._pool = number, pool

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """function(item) for each item, in order; only a few pieces are worked on ahead, to bound the memory."""
        if self._pool is None:
            yield from map(function, items)
            return
        ahead: deque[Future[Result]] = deque()
        try:
            for item in items:
                ahead.append(self._pool.submit(function, item))
                if len(ahead) > 2 * self.number:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


@contextmanager
def workers(device: torch.device) -> Iterator[Workers]:
    """As many workers as torch has threads on the CPU; none on a GPU, where one thread keeps the device busy.

    Example:
        >>> with workers(torch.device("cpu")) as some:
        ...     list(some.map(lambda x: x * x, range(4)))
        [0, 1, 4, 9]
    """
    number = torch.get_num_threads() if device.type == "cpu" else 1
    if number == 1:
        yield Workers(1, None)
        return
    with one_thread(), ThreadPoolExecutor(number) as pool:
        yield Workers(number, pool)


def versions() -> dict[str, str]:
    """What a result depends on beside its settings: lcmat, Python, torch and the machine."""
    return {
        "lcmat": lcmat.version.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": machine(),
    }


def machine() -> str:
    """The machine in words, for quoting a measurement."""
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, {os.cpu_count()} CPU cores"
    return f"CPU, {os.cpu_count()} cores"


def _available_main_memory() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return 4 * 10**9


def _container_headroom() -> int | None:
    """What a control group still allows, where one limits this process."""
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:  # noqa: PTH123
            limit = file.read().strip()
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as file:  # noqa: PTH123
            return None if limit == "max" else max(0, int(limit) - int(file.read()))
    except (OSError, ValueError):
        return None
