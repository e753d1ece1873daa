"""Picks one after the other, each from the values of all samples: on a GPU one pick is captured and replayed.

A pick is some twenty small operations, which a GPU computes faster than they can be started one by one. As a CUDA
graph they are started together. For that all tensors stay where they are, and how far a run has come is a tensor too.
"""

import threading
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from lcmat.selection.ties import Picker

WORTH = 16  # calls from which on a capture, some milliseconds, takes less time than it saves
_OF_THREAD = threading.local()


class Replayed:
    """A function of tensors that stay in place, for calling again and again.

    On a GPU the first call is plain: the libraries choose their kernels, which a capture does not allow. The second is
    captured as a CUDA graph, and this and all others replay it.

    Args:
        function: must not wait for the device.
        device: that it computes on.
        times: how often it will be called, at most.
    """

    def __init__(self, function: Callable[[], None], device: torch.device, times: int) -> None:
        self._function = function
        self._stream = _side_stream(device) if device.type == "cuda" and times >= WORTH else None
        self._warm = False
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do what the function does."""
        if self._graph is None and self._stream is not None and self._warm:
            self._graph = self._capture(self._stream)
        if self._graph is not None:
            self._graph.replay()
        elif self._stream is None:
            self._function()
        else:
            self._warm = True
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
            with torch.cuda.stream(self._stream):
                self._function()
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def _capture(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph | None:
        """The function as a graph; capturing computes nothing. Where it fails, all further calls are plain."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(stream.device)
        try:
            # `torch.cuda.graph` would also collect garbage and give memory back, a tenth of a second for each group.
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    self._function()
                finally:
                    graph.capture_end()
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            warnings.warn(f"selecting without a CUDA graph, which is slower: {first}", stacklevel=3)
            self._stream = None
            return None
        return graph


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of a device that this thread captures on.

    It is one for all its captures, as libraries keep a workspace for each; and no other thread's, as what that starts
    would become part of a capture.
    """
    streams: dict[torch.device, torch.cuda.Stream] = _OF_THREAD.__dict__.setdefault("streams", {})
    if device not in streams:
        streams[device] = torch.cuda.Stream(device)
    return streams[device]


class Course:
    """The picks so far, in tensors that stay in place.

    Args:
        picker: says which samples are given and takes the best.
        count: how many picks there will be.

    Attributes:
        order: the picks, `[count]`; 0 where there is none yet.
        place: how many there are, `[1]`.
        taken: which samples are picked, `[n]`.
    """

    def __init__(self, picker: Picker, count: int) -> None:
        self.ties = picker.ties
        self.given = picker.given[:count].split(1) if len(picker.given) else ()
        device = picker.given.device
        self.order = torch.zeros(count, dtype=torch.int64, device=device)
        self.place = torch.zeros(1, dtype=torch.int64, device=device)
        self.taken = torch.zeros(len(picker.ties.permutation), dtype=torch.bool, device=device)
        self._barred = torch.full((), -torch.inf, device=device)

    def best(self, values: Tensor) -> Tensor:
        """The sample of largest value that is not picked, `[1]`."""
        # One operation where `masked_fill`, which copies first, is two.
        return self.ties.best(torch.where(self.taken, self._barred, values))

    def settle(self, pick: Tensor) -> None:
        """Count a sample `[1]` among the picks."""
        self.order.index_copy_(0, self.place, pick)
        self.taken.index_fill_(0, pick, True)
        self.place.add_(1)


def pick_repeatedly(
    values: Callable[[], Tensor], take: Callable[[Tensor], None], count: int, picker: Picker
) -> tuple[Tensor, Tensor]:
    """`count` picks of largest value, and the value that each had, float64.

    Args:
        values: of all samples as things are, `[n]`.
        take: changes things, in place, for a sample `[1]` that is picked.
        count: how many to pick.
        picker: says which samples are given and takes the best.

    Example:
        >>> from lcmat.selection.ties import Ties
        >>> picker = Picker(Ties(3, torch.Generator().manual_seed(0), torch.device("cpu")))
        >>> worth = torch.tensor([1.0, 3.0, 2.0])
        >>> order, found = pick_repeatedly(lambda: worth, lambda pick: worth.sub_(1), 2, picker)
        >>> order.tolist(), found.tolist()
        ([1, 2], [3.0, 1.0])
    """
    course = Course(picker, count)
    found = torch.zeros(count, dtype=torch.float64, device=course.order.device)

    def settle(pick: Tensor, known: Tensor) -> None:
        found.index_copy_(0, course.place, known.index_select(0, pick).double())
        course.settle(pick)
        take(pick)

    def step() -> None:
        known = values()
        settle(course.best(known), known)

    for pick in course.given:
        settle(pick, values())
    left = count - len(course.given)
    replayed = Replayed(step, found.device, left)
    for _ in range(left):
        replayed()
    return course.order, found
