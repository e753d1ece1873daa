"""The one loop of condensation: draw, look with a network, compare, move the samples, train the network."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from lcmat import augment, seeding
from lcmat.condensation import views
from lcmat.condensation.follower import Follower
from lcmat.condensation.plan import Plan
from lcmat.condensation.samples import RealSamples, first_samples, pixel_bounds
from lcmat.condensation.views import View
from lcmat.training.step import GraphStep
from lcmat.types import Data, ImageData
from lcmat.types.formation import decode

# Steps after which losses are read at the earliest where a network is drawn anew more often than that.
SHORTEST_BLOCK = 20
# A learned label begins as softmax of this for its own class: nearly, but not quite, the hard label.
_FIRST_MARK = 5.0
# Synthetic samples that one training step of a network takes at most, as in the code of DC.
_LARGEST_SYNTHETIC_BATCH = 256
# Samples that are drawn and augmented at once, for several training steps of a network.
_PREPARED = 2048


class Loop:
    """A condensation under way.

    Attributes:
        stored: the synthetic samples, normalised, `[K, per_class, ...]`.
        marks: logarithms of learned labels, `[K, per_class·f², C]`, or None.
        optimiser: of both.
        follower: the network that looks at the samples.
        generators: of everything random in a step, on the device.
    """

    def __init__(self, data: Data, plan: Plan, device: torch.device, *, precision: str, graph: bool) -> None:
        self.data, self.plan, self.recipe, self.device = data, plan, plan.recipe, device
        self.precision = precision
        self.real = RealSamples(data, device)
        self.bounds = pixel_bounds(data, device)
        self.classes = torch.tensor(plan.classes, device=device)
        self.operations: tuple[str, ...] = ()
        if isinstance(data, ImageData):
            self.operations = augment.parse_operations(self.recipe.augmentation, flip=data.flip)
        first = first_samples(
            data, self.classes.cpu(), plan.per_class, start=self.recipe.start, factor=plan.factor, seed=plan.seed
        )
        self.stored = first.to(device).requires_grad_()
        self.labels = functional.one_hot(self.classes, len(data.class_names)).float()[:, None]
        decoded = plan.per_class * plan.factor**2
        self.marks: Tensor | None = None
        if self.recipe.learn_labels:
            self.marks = (_FIRST_MARK * self.labels).repeat(1, decoded, 1).requires_grad_()
        self.learned = [self.stored] if self.marks is None else [self.stored, self.marks]
        self.optimiser = _make_optimiser(self.learned, plan, device)
        self.generators = {
            name: seeding.generator(plan.seed, "condensation", name, device=device) for name in ("matching", "training")
        }
        self.follower = Follower(data, plan, device, precision=precision)
        self.layers: dict[nn.Module, list[nn.Module]] = {}
        if self.recipe.looks_at == "gradients" and self.recipe.objective is not None:
            for net in (self.follower.net, self.follower.quick):
                self.layers[net] = views.matched_layers(net, head=self.recipe.match_head)
        self.match_step: Callable[[int], Tensor] = lambda _: self.match()
        self.train_step: Callable[[int], Tensor] = lambda _: self.train()
        # The factorisation of a kernel may wait for the device, and has few launches to save.
        if graph and device.type == "cuda" and self.recipe.looks_at != "inputs":
            self.match_step = GraphStep(self.match_step, [self.generators["matching"]])
            self.train_step = GraphStep(self.train_step, [self.generators["training"]])

    @property
    def block(self) -> int:
        """Steps between two looks at the losses; each block begins with a new network."""
        return self.recipe.period * max(1, SHORTEST_BLOCK // self.recipe.period)

    def run_block(self, steps: int) -> Iterator[Tensor]:
        """Some steps, beginning with a new network; gives the loss of each, on the device."""
        for index in range(steps):
            place = index % self.recipe.period
            if place == 0:
                self.clamp()
                if self.recipe.looks_at != "inputs":
                    self.follower.renew()
            yield self.match_step(0)
            # A network that is about to be replaced needs no training.
            if self.recipe.follow and self.recipe.network_steps and place < self.recipe.period - 1:
                self.train_step(0)
        self.clamp()

    @torch.no_grad()
    def clamp(self) -> None:
        """Bring pixels back to their range."""
        if self.bounds is not None:
            self.stored.copy_(torch.minimum(torch.maximum(self.stored, self.bounds[0]), self.bounds[1]))

    def match(self) -> Tensor:
        """One step of the samples: Σ over classes of the objective, differentiated and followed downhill."""
        recipe = self.recipe
        # Numbers are drawn for all classes, so that a shard of the classes sees what the whole would see.
        everyone, draws = len(self.data.class_names), self.generators["matching"]
        numbers = torch.rand(everyone, recipe.real_batch, generator=draws, device=self.device)
        change = augment.draw(self.operations, everyone, generator=draws, device=self.device, single=recipe.single)
        rows = self._synthetic_rows()
        total = torch.zeros((), device=self.device)
        gradients: list[Tensor] = []
        for first in range(0, len(self.classes), self.plan.together):
            part = slice(first, first + self.plan.together)
            classes = self.classes[part]
            inputs, targets = self._synthetic(part, rows)
            real = self.real.of_classes(classes, numbers[classes])
            if self.operations:
                # Together, so that both undergo the same.
                batch = torch.cat([real, inputs], 1)
                batch = change.take(classes)(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])
                real, inputs = batch.split([real.shape[1], inputs.shape[1]], 1)
            labels = self.labels[part].expand(-1, recipe.real_batch, -1)
            value, found = self._compare(self._look(real, labels), inputs, targets)
            gradients = [a + b for a, b in zip(gradients, found, strict=True)] if gradients else list(found)
            total = total + value
        if recipe.optimizer == "sgd":
            gradients = [_limited(gradient, recipe.longest / recipe.lr) for gradient in gradients]
        for learned, gradient in zip(self.learned, gradients, strict=True):
            learned.grad = gradient
        self.optimiser.step()
        return total

    def train(self) -> Tensor:
        """Train the network for as many steps as the recipe says; the loss of the last one."""
        recipe, draws = self.recipe, self.generators["training"]
        # CutMix covers parts of the images already.
        operations = tuple(name for name in self.operations if name != "cutout" or not recipe.cutmix)
        done, loss = 0, torch.zeros((), device=self.device)
        while done < recipe.network_steps:
            # Several batches are prepared at once: one by one, small launches would take most of the time.
            inputs, targets = self._training_batches(recipe.network_steps - done)
            count, size = targets.shape[:2]
            inputs, targets = inputs.flatten(0, 1), targets.flatten(0, 1)
            if operations:
                once = augment.draw(operations, len(inputs), generator=draws, device=self.device, single=recipe.single)
                inputs = once(inputs)
            if recipe.cutmix and isinstance(self.data, ImageData):
                inputs, targets = augment.cutmix(
                    inputs, targets, probability=recipe.cutmix, generator=draws, batches=count
                )
            loss = self.follower.train(inputs, targets, size=size)
            done += count
        return loss

    def _training_batches(self, most: int) -> tuple[Tensor, Tensor]:
        """Samples and distributions over the classes for some training steps, `[steps, n, ...]` and `[steps, n, C]`."""
        draws, size = self.generators["training"], self.recipe.network_batch
        if self.recipe.follow == "real":
            count = min(most, max(1, _PREPARED // size))
            inputs, labels = self.real.of_all(count * size, draws)
            targets = functional.one_hot(labels, len(self.data.class_names)).float()
            return inputs.unflatten(0, (count, size)), targets.unflatten(0, (count, size))
        inputs, targets = (part.detach().flatten(0, 1) for part in self._synthetic(slice(None), None))
        size = min(len(inputs), _LARGEST_SYNTHETIC_BATCH)
        count = min(most, max(1, _PREPARED // size))
        if size == len(inputs):
            return inputs.expand(count, *inputs.shape), targets.expand(count, *targets.shape)
        order = torch.rand(count, len(inputs), generator=draws, device=self.device).argsort(1)
        rows = order[:, :size]
        return inputs[rows], targets[rows]

    def _synthetic_rows(self) -> Tensor | None:
        """Which decoded samples of each class take part in a step, `[K, b]`; None for all of them."""
        count = self.plan.per_class * self.plan.factor**2
        if count <= self.recipe.synthetic_batch:
            return None
        shape = (len(self.data.class_names), count)
        order = torch.rand(shape, generator=self.generators["matching"], device=self.device).argsort(1)
        return order[self.classes, : self.recipe.synthetic_batch]

    def _synthetic(self, part: slice, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """Decoded samples of some classes with their labels, `[K, b, ...]` and `[K, b, C]`."""
        stored = self.stored[part]
        inputs = decode(stored.flatten(0, 1), self.plan.factor).unflatten(0, (len(stored), -1))
        if self.marks is None:
            targets = self.labels[part].expand(-1, inputs.shape[1], -1)
        else:
            targets = self.marks[part].softmax(-1)
        if rows is None:
            return inputs, targets
        own, chosen = torch.arange(len(stored), device=self.device)[:, None], rows[part]
        return inputs[own, chosen], targets[own, chosen]

    def _look(self, inputs: Tensor, targets: Tensor) -> View:
        """What is known of real samples; nothing of it is differentiated."""
        net = self.follower.quick
        if self.recipe.looks_at == "inputs":
            return View(inputs, targets)
        if self.recipe.looks_at == "features":
            with torch.no_grad():
                return views.view_features(net, inputs, targets)
        return views.view_gradients(net, self.layers[net], inputs, targets)

    def _compare(self, real: View, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """The sum of the objective, and its derivatives in what is learned."""
        assert self.recipe.objective is not None
        objective, net = partial(self.recipe.objective, real), self.follower.net
        if self.recipe.looks_at == "gradients":
            layers = self.layers[net]
            value, direction = views.slope(objective, views.view_gradients(net, layers, inputs, targets))
            change = views.along(net, layers, inputs, targets, direction)
            return value, torch.autograd.grad(change, self.learned)
        view = View(inputs, targets)
        if self.recipe.looks_at == "features":
            view = views.view_features(net, inputs, targets)
        value = objective(view).sum()
        return value.detach(), torch.autograd.grad(value, self.learned)


def _limited(gradient: Tensor, largest: float) -> Tensor:
    """The gradient of each sample `[K, m, ...]`, shortened where its root mean square is above `largest`.

    Where a normalisation meets a constant map, derivatives are thousands of times their usual size; one such step
    would throw a sample out of its range.
    """
    size = gradient.square().mean(tuple(range(2, gradient.ndim)), keepdim=True).sqrt()
    return gradient * (largest / size.clamp(min=torch.finfo(size.dtype).tiny)).clamp(max=1)


def _make_optimiser(learned: list[Tensor], plan: Plan, device: torch.device) -> torch.optim.Optimizer:
    recipe = plan.recipe
    if recipe.optimizer == "adam":
        return torch.optim.Adam(learned, lr=recipe.lr, capturable=device.type == "cuda")
    return torch.optim.SGD(learned, lr=recipe.lr, momentum=recipe.momentum)
