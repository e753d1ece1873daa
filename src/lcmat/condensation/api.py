"""`condense`: from a data set to a few synthetic samples of each class."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lcmat import runtime, training
from lcmat.condensation.checkpoint import Checkpoint
from lcmat.condensation.loop import Loop
from lcmat.condensation.plan import Plan, make_plan
from lcmat.training import precision as number_formats
from lcmat.types import Data, SyntheticSet

TEACHER_EPOCHS = 20


class DivergenceError(ValueError):
    """A loss or a sample is no longer finite.

    Attributes:
        kept: the set as it was at the end of the last good block of steps.
    """

    def __init__(self, message: str, kept: SyntheticSet) -> None:
        super().__init__(message)
        self.kept = kept


def condense(
    data: Data,
    method: str = "lcmat-c",
    *,
    per_class: int = 10,
    steps: int = 1000,
    net: str = "",
    factor: int = 1,
    start: str | None = None,
    labels: str = "hard",
    teacher: nn.Module | None = None,
    classes: Sequence[int] | None = None,
    together: int | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    device: torch.device | str | None = None,
    precision: str = "auto",
    graph: bool = True,
    progress: Callable[[int, int, float], None] | None = None,
    watch: Callable[[int, SyntheticSet], None] | None = None,
    watch_every: int = 500,
    **options: Any,
) -> SyntheticSet:
    """Learn a few synthetic samples of each class from which fresh networks train well.

    Args:
        data: the training data; images or feature vectors.
        method: a name from `condensers()`.
        per_class: stored samples of each class.
        steps: updates of the samples.
        net: that looks at the samples; without batch normalisation. ConvNet-3 for images, `mlp` for feature vectors.
        factor: f; each stored image holds f × f smaller ones, which are enlarged to train on (multi-formation).
        start: 'noise' or 'real' samples; the method's own choice if not given.
        labels: 'hard', or 'soft' for those that a teacher gives the finished samples.
        teacher: for soft labels; if not given, `net` is trained on all the data for 20 epochs.
        classes: indices of the classes to condense, as one shard of several that `SyntheticSet.join` puts together.
        together: classes in one computation; all of them if not given. Fewer take less memory.
        seed: of everything random; the same call gives the same set on the CPU.
        checkpoint: a folder; the same call goes on from there, and one with more steps continues a finished one.
        device: None takes the first CUDA device, else the CPU.
        precision: 'auto' (float32 on the CPU, bf16 on CUDA), 'float32', 'tf32' or 'bf16'. With 'bf16' real samples are
            looked at and networks trained in bfloat16; what synthetic samples are learned from stays in float32, with
            products in TF32 on CUDA.
        graph: on CUDA, whether whole steps are captured as CUDA graphs.
        progress: called with (steps done, steps in all, mean loss of the last block of steps).
        watch: called with (steps done, the set as it is) every `watch_every` steps, for a look or a quick evaluation.
        watch_every: steps; rounded up to whole blocks.
        **options: the method's own options; an unknown one is a TypeError that names the valid ones.

    Returns:
        The synthetic set, on the CPU.

    Raises:
        ValueError: for settings out of range, data that cannot be condensed so, a checkpoint of another condensation,
            or (as DivergenceError) values that are no longer finite.

    Example:
        >>> import torch
        >>> from lcmat.types import FeatureData
        >>> labels = torch.arange(40) % 2
        >>> data = FeatureData(torch.randn(40, 3) + 3 * labels[:, None], labels, ("low", "high"))
        >>> tiny = condense(data, "dm", per_class=2, steps=5, net="mlp:width=8", device="cpu")
        >>> tiny.per_class, tiny.label_kind
        ((2, 2), 'hard')
    """
    plan = make_plan(
        data,
        method,
        options,
        per_class=per_class,
        net=net,
        factor=factor,
        start=start,
        labels=labels,
        classes=classes,
        together=together,
        seed=seed,
    )
    if steps < 1 or watch_every < 1:
        raise ValueError(f"expected steps and watch_every of at least 1, got {steps} and {watch_every}")
    place = runtime.pick_device(device)
    resolved = number_formats.resolve(precision, place)
    with (
        number_formats.float32_products(resolved, place),
        torch.cuda.device(place) if place.type == "cuda" else nullcontext(),
    ):
        loop = Loop(data, plan, place, precision=resolved, graph=graph)
        run = _Run(loop, steps if plan.recipe.objective is not None else 0, checkpoint)
        run.carry_out(progress, watch, watch_every)
    tiny = run.result()
    if labels == "soft":
        tiny = _with_soft_labels(tiny, data, plan, teacher, place)
    return tiny


class _Run:
    """The steps of one condensation, with what is kept and told between them."""

    def __init__(self, loop: Loop, steps: int, folder: str | Path | None) -> None:
        self.loop, self.steps = loop, steps
        config = {
            "method": loop.plan.method,
            "options": dict(loop.plan.options),
            **loop.plan.describe(),
            "factor": loop.plan.factor,
            "seed": loop.plan.seed,
            "data": loop.data.fingerprint,
            "normalisation": [list(loop.data.mean), list(loop.data.std)],
            "precision": loop.precision,
            "device": loop.device.type,
            "lcmat": runtime.versions()["lcmat"],
            "torch": runtime.versions()["torch"],
        }
        self.checkpoint = Checkpoint(folder, config)
        self.done = self.checkpoint.load(loop)
        if self.done.step > steps:
            raise ValueError(
                f"{folder} holds a condensation of {self.done.step:,} steps, more than the {steps:,} asked for"
            )

    def carry_out(
        self,
        progress: Callable[[int, int, float], None] | None,
        watch: Callable[[int, SyntheticSet], None] | None,
        watch_every: int,
    ) -> None:
        """All steps that are not done yet."""
        while self.done.step < self.steps:
            before = self.done.step
            started = time.perf_counter()
            loss = self._run_block(min(self.loop.block, self.steps - before))
            self.done.losses.append(loss)
            self.done.seconds += time.perf_counter() - started
            self.checkpoint.save(self.loop, self.done, finished=self.done.step == self.steps)
            if progress is not None:
                progress(self.done.step, self.steps, loss)
            if watch is not None and self.done.step // watch_every > before // watch_every:
                watch(self.done.step, self.result())

    def _run_block(self, steps: int) -> float:
        """A block of steps; the mean loss.

        Raises:
            DivergenceError: when a loss or a sample is not finite.
        """
        good = [learned.detach().clone() for learned in self.loop.learned]
        losses = torch.zeros(steps, dtype=torch.float64, device=self.loop.device)
        eager = self.loop.device.type == "cpu"
        for index, loss in enumerate(self.loop.run_block(steps)):
            losses[index].copy_(loss)
            if eager and not torch.isfinite(loss):
                break
        values = losses.cpu()
        finite = all(bool(torch.isfinite(learned).all()) for learned in self.loop.learned)
        bad = (~torch.isfinite(values)).nonzero().flatten()
        if len(bad) or not finite:
            step = self.done.step + (int(bad[0]) + 1 if len(bad) else steps)
            with torch.no_grad():
                for learned, before in zip(self.loop.learned, good, strict=True):
                    learned.copy_(before)
            raise DivergenceError(
                f"the condensation diverged: {'the loss' if len(bad) else 'a sample'} of step {step:,} of "
                f"{self.steps:,} is not finite; give a lower rate than lr={self.loop.recipe.lr:g}"
                f"{self.checkpoint.place}",
                self.result(),
            )
        self.done.step += steps
        return float(values.mean())

    def result(self) -> SyntheticSet:
        """The set as it is now."""
        loop, plan, data = self.loop, self.loop.plan, self.loop.data
        soft = None
        if loop.marks is not None:
            soft = loop.marks.detach().softmax(-1).flatten(0, 1).float().cpu()
        recipe = {**plan.describe(), "steps": self.done.step, "seconds": round(self.done.seconds, 3)}
        return SyntheticSet(
            _in_units_of_data(loop),
            loop.classes.cpu().repeat_interleave(plan.per_class),
            data.class_names,
            data.mean,
            data.std,
            plan.method,
            plan.options,
            plan.seed,
            len(data),
            soft=soft,
            soft_from="" if soft is None else "learned with the samples",
            factor=plan.factor,
            flip=getattr(data, "flip", True),
            fingerprint=data.fingerprint,
            recipe={**recipe, "precision": loop.precision},
            versions=runtime.versions(),
        )


def _in_units_of_data(loop: Loop) -> Tensor:
    """The stored samples: pixels in [0, 1], features as the data has them, `[K·per_class, ...]`."""
    stored = loop.stored.detach().flatten(0, 1).double().cpu()
    shape = (-1, 1, 1) if loop.bounds is not None else (-1,)
    mean, std = (torch.tensor(part, dtype=torch.float64).reshape(shape) for part in (loop.data.mean, loop.data.std))
    values = (stored * std + mean).float()
    return values.clamp(0, 1) if loop.bounds is not None else values


def _with_soft_labels(
    tiny: SyntheticSet, data: Data, plan: Plan, teacher: nn.Module | None, device: torch.device
) -> SyntheticSet:
    """The set with the distributions that a teacher gives its decoded samples."""
    source = "a teacher that was given"
    if teacher is None:
        teacher = training.train(
            plan.net, data, epochs=TEACHER_EPOCHS, schedule="cosine", seed=plan.seed, device=device
        )
        source = f"{plan.net}, {TEACHER_EPOCHS} epochs on all the data"
    logits = training.predict(teacher, tiny.data(), device=device, precision="float32")
    soft = logits.double().softmax(1).float()
    return replace(tiny, soft=soft, soft_from=source)
