"""One training step: plain, or captured once for each batch size as a CUDA graph and replayed."""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lcmat.training import precision as number_formats
from lcmat.training.batches import Batches
from lcmat.training.inference import full_type
from lcmat.training.optimiser import Optimiser
from lcmat.types.checks import look_like_probabilities


class PlainStep:
    """Augment, forward, loss, backward, optimiser, for the staged batch.

    The loss is the mean over the batch of w_i·cross-entropy_i, with weights w of mean 1 over the data (1 when there
    are none), so that its expectation is the weighted mean over the data.
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: Optimiser,
        batches: Batches,
        *,
        classes: int,
        precision: str,
        device: torch.device,
        losses: Tensor | None = None,
    ) -> None:
        """Put the parts together; `losses` is a buffer that gets the loss of each sample, before weights."""
        self._losses = losses
        self._model = model
        self._optimiser = optimiser
        self._batches = batches
        self._classes = classes
        self._precision = precision
        self._device = device
        self._looked = False

    def __call__(self, size: int) -> Tensor:
        """One step on the first `size` staged rows; returns the loss, 0-dimensional, on the device."""
        inputs, labels, weights = self._batches.take(size)
        with number_formats.autocast(self._precision, self._device):
            logits = self._model(inputs)
        check_logits(logits, size, self._classes)
        logits = full_type(logits)
        if not self._looked:  # never while a graph is captured, where values cannot be looked at
            self._looked = True
            if look_like_probabilities(logits, within=1e-3):
                warnings.warn(
                    "the model gives probabilities where the loss takes logits, and applies softmax itself; let the "
                    "model return the values before its softmax",
                    stacklevel=2,
                )
        if labels.is_floating_point():
            labels = labels.to(logits.dtype)
        losses = nn.functional.cross_entropy(logits, labels, reduction="none")
        if self._losses is not None:
            self._losses[:size].copy_(losses.detach())
        loss = (losses if weights is None else losses * weights).mean()
        loss.backward()
        self._optimiser.step()
        return loss.detach()


class GraphStep:
    """A plain step, captured as one CUDA graph for each batch size.

    The first step of each size is a real, plain one: it makes the optimiser's state and lets the libraries choose
    their kernels, neither of which a capture allows. Capturing computes nothing; every later step is a replay.
    """

    def __init__(self, step: Callable[[int], Tensor], generators: Sequence[torch.Generator]) -> None:
        self._step = step
        self._generators = generators
        self._stream = torch.cuda.Stream()
        self._warm: set[int] = set()
        self._captured: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def __call__(self, size: int) -> Tensor:
        """One step; the loss is overwritten by the next step of the same size."""
        if size not in self._warm:
            self._warm.add(size)
            return self._warm_up(size)
        if size not in self._captured:
            self._captured[size] = self._capture(size)
        graph, loss = self._captured[size]
        graph.replay()
        return loss

    def _warm_up(self, size: int) -> Tensor:
        # Off the default stream, so that autograd's accumulation is not bound to it when the capture comes.
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = self._step(size)
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def _capture(self, size: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        graph = torch.cuda.CUDAGraph()
        for generator in self._generators:
            graph.register_generator_state(generator)
        # Graphs run one after the other and share nothing but the loss that each keeps, so one pool serves them all.
        pool = next((other.pool() for other, _ in self._captured.values()), None)
        try:
            with torch.cuda.graph(graph, pool=pool, stream=self._stream):
                loss = self._step(size)
        except RuntimeError as error:
            raise RuntimeError(
                f"the training step could not be captured as a CUDA graph ({error}); give graph=False to train without"
            ) from error
        return graph, loss


def check_logits(logits: object, rows: int, classes: int) -> None:
    """Refuse an output that is no matrix of logits with a row for each sample and a column for each class."""
    if not isinstance(logits, Tensor):
        raise TypeError(f"expected a model that returns its logits as a tensor [n, C], got {type(logits).__name__}")
    if logits.ndim != 2 or len(logits) != rows or logits.shape[1] < classes:
        raise ValueError(
            f"expected logits of shape [{rows}, {classes}], a row for each sample and a column for each class, "
            f"got {list(logits.shape)}"
        )
