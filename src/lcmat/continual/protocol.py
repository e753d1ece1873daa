"""One run over a stream: the memory filled step by step, networks trained by one of two protocols, and tested."""

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcmat import networks, seeding, training
from lcmat.continual.fill import Asked, Filler
from lcmat.continual.memory import Budget, Kept, Memory, joined
from lcmat.continual.settings import Settings
from lcmat.continual.store import FillStore
from lcmat.continual.stream import Step, Stream
from lcmat.training.shared import Proxies
from lcmat.types import Data


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one step led to.

    Attributes:
        step: its number.
        accuracy: over all test samples of the classes seen.
        accuracies: on the test samples of the classes of each step so far: a row of the accuracy matrix.
        seen: how many classes.
        memory: places taken in the memory.
        per_class: class -> places.
        seconds: of looking and filling ('fill') and of training ('train').
    """

    step: int
    accuracy: float
    accuracies: tuple[float, ...]
    seen: int
    memory: int
    per_class: Mapping[int, int]
    seconds: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        amounts = {str(index): amount for index, amount in self.per_class.items()}
        return {**asdict(self), "accuracies": list(self.accuracies), "per_class": amounts}


class Walk:
    """One filler, one seed, one protocol, over one stream."""

    def __init__(
        self,
        stream: Stream,
        filler: Filler,
        budget: Budget,
        settings: Settings,
        *,
        seed: int,
        device: torch.device,
        folder: Path | None = None,
        progress: Any = None,
        proxies: Proxies | None = None,
    ) -> None:
        self.stream, self.filler, self.settings = stream, filler, settings
        self.seed, self.device, self.progress = seed, device, progress
        self.memory = Memory(stream.data.train, budget)
        self._store = FillStore(None if folder is None else folder / "memories")
        self._trainings = None if folder is None else folder / "trainings" / self._name()
        self._model: nn.Module | None = None
        self._proxies = Proxies() if proxies is None else proxies
        self._saved = 0.0  # seconds of this step's proxy, where another walk trained it

    def _name(self) -> str:
        return f"{self.filler.name}-{self._store.digest(self.identity())}"

    def identity(self) -> dict[str, Any]:
        """All that decides the result, as JSON has it."""
        budget = self.memory.budget
        return {
            **self.filler.describe(),
            "stream": [list(step.classes) for step in self.stream.steps],
            "data": self.stream.data.train.fingerprint,
            "budget": asdict(budget),
            "settings": asdict(self.settings),
            "seed": self.seed,
        }

    def outcomes(self, done: int = 0) -> Iterator[Outcome]:
        """Step after step; the first `done` only bring the memory, and under 'replay' the network, up to date."""
        for step in self.stream.steps:
            judged = step.number >= done
            outcome = self._take(step, judged=judged)
            if outcome is not None:
                yield outcome
        if self._trainings is not None:
            shutil.rmtree(self._trainings, ignore_errors=True)

    @property
    def stands_alone(self) -> bool:
        """Whether what is kept at a step depends on no other step, so that steps can be filled in any order."""
        classes = [index for step in self.stream.steps for index in step.classes]
        return (
            self.settings.protocol == "memory"
            and self.memory.budget.total is None
            and len(set(classes)) == len(classes)
            and all(len(step.classes) > 1 for step in self.stream.steps)
        )

    def look(self, number: int) -> float:
        """Train the network that selectors look with at a step that stands alone; the seconds."""
        step, start = self.stream.steps[number], time.perf_counter()
        self._look(step, self.stream.data.train.take(step.rows))
        return time.perf_counter() - start + self._saved

    def fill(self, number: int) -> float:
        """Fill the memory at a step that stands alone, for the folder to keep; the seconds."""
        step = self.stream.steps[number]
        return self._fill(step, self.stream.data.train.take(step.rows))

    def judge(self, number: int) -> Outcome:
        """The outcome of one step; what was done up to it is found in the folder."""
        outcomes = self.outcomes(done=number)
        outcome = next(outcomes)
        if number == len(self.stream.steps) - 1:
            next(outcomes, None)  # clears up
        return outcome

    def _take(self, step: Step, *, judged: bool) -> Outcome | None:
        data = self.stream.data.train
        arrived = data.take(step.rows)
        start = time.perf_counter()
        if self.settings.protocol == "replay":
            # The memory is filled by what the network makes of the step, and so after its training.
            self._model = self._replay(step, arrived)
            trained = time.perf_counter() - start
            seconds = {"fill": self._fill(step, arrived), "train": trained}
        else:
            seconds = {"fill": self._fill(step, arrived)}
            if not judged:
                return None
            start = time.perf_counter()
            self._model = self._train_on_memory(step)
            seconds["train"] = time.perf_counter() - start
        return self._judge(step, self._model, seconds) if judged else None

    def _fill(self, step: Step, arrived: Data) -> float:
        """Choose from what arrived, together with what the memory holds of classes that return.

        Returns:
            The seconds that it takes by itself: what a walk costs does not depend on which others were before it.
        """
        candidates = joined(arrived, self.memory.data(step.classes))
        at_hand = torch.bincount(candidates.labels, minlength=len(candidates.class_names))
        amounts = self.memory.plan({index: int(at_hand[index]) for index in step.classes})
        wanted = {index: amounts[index] for index in step.classes}
        decisive = {
            **self.filler.describe(),
            "candidates": candidates.fingerprint,
            "amounts": {str(index): amount for index, amount in wanted.items()},
            "seed": self.seed,
            **({"look": self.identity(), "step": step.number} if self.filler.looks else {}),
        }

        def make(checkpoint: Path | None) -> tuple[dict[int, Kept], float]:
            start, self._saved = time.perf_counter(), 0.0
            asked = Asked(
                candidates, wanted, lambda: self._look(step, candidates), self.seed, self.device, checkpoint,
                self.progress,
            )  # fmt: skip
            kept = self.filler.fill(asked)
            return kept, time.perf_counter() - start + self._saved

        kept, seconds = self._store.get(decisive, make)
        self.memory = self.memory.filled(amounts, kept)
        return seconds

    def _look(self, step: Step, candidates: Data) -> nn.Module:
        """The model that a selector looks with: the network that is trained on, or a proxy of its own."""
        if self.settings.protocol == "replay" and not self.filler.needs_record:
            assert self._model is not None  # the step's training comes before its filling
            return self._model
        data = candidates
        if len(candidates.labels.unique()) == 1:
            if self.filler.needs_record:
                raise ValueError(
                    f"{self.filler.name} looks at how a training on what arrives went, but step {step.number + 1} has "
                    "one class only; give every step two classes or more"
                )
            data = joined(candidates, self.memory.data())
        seed = seeding.derive(self.seed, "proxy", step.number)
        if len(data.labels.unique()) == 1:  # in the first step there is nothing to tell apart yet
            return networks.build(self.settings.proxy, data, seed=seed).eval()
        record = self.filler.needs_record

        def train(checkpoint: Path | None) -> nn.Module:
            return training.train(
                self.settings.proxy,
                data,
                epochs=self.settings.proxy_epochs,
                batch_size=self.settings.batch_size,
                seed=seed,
                record=record,
                checkpoint=checkpoint,
                device=self.device,
            )

        decisive = {
            "data": data.fingerprint,
            "seed": seed,
            "record": record,
            "net": self.settings.proxy,
            "epochs": self.settings.proxy_epochs,
            "batch_size": self.settings.batch_size,
            "device": self.device.type,
        }
        model, self._saved = self._proxies.get(f"proxy-{self._store.digest(decisive)}", train)
        return model

    def _train_on_memory(self, step: Step) -> nn.Module:
        """A fresh network, trained on nothing but the memory of all classes so far."""
        data = self.memory.data()
        assert data is not None  # the step has just been kept
        return self._train(networks.build(self.settings.net, data, seed=self._training_seed(step)), data, step)

    def _replay(self, step: Step, arrived: Data) -> nn.Module:
        """The network of the step before, trained on with what arrived and as many samples from the memory."""
        model = self._model
        if model is None:
            model = networks.build(self.settings.net, arrived, seed=self._training_seed(step))
        old = self.memory.data()
        times = 1 if old is None else max(1, round(len(arrived) / len(old)))
        return self._train(model, joined(arrived, old, times=times), step)

    def _train(self, model: nn.Module, data: Data, step: Step) -> nn.Module:
        if len(data.labels.unique()) == 1:  # with one class every answer is right
            return model.to(self.device).eval()
        replayed = self.settings.protocol == "replay" and self._trainings is not None
        return training.train(
            model,
            data,
            epochs=self.settings.epochs,
            batch_size=self.settings.batch_size,
            lr=self.settings.lr,
            schedule="cosine",
            augment=self.settings.augment,
            seed=self._training_seed(step),
            checkpoint=self._trainings / f"step-{step.number}" if replayed and self._trainings else None,
            device=self.device,
        )

    def _training_seed(self, step: Step) -> int:
        return seeding.derive(self.seed, "continual", step.number)

    def _judge(self, step: Step, model: nn.Module, seconds: Mapping[str, float]) -> Outcome:
        """Test among the classes seen so far."""
        seen = self.stream.seen(step.number)
        test = self.stream.data.test
        rows = torch.isin(test.labels, torch.tensor(seen)).nonzero().flatten()
        logits = training.predict(model, test.take(rows), device=self.device)
        hidden = torch.ones(logits.shape[1], dtype=torch.bool)
        hidden[list(seen)] = False
        right = logits.masked_fill(hidden, -torch.inf).argmax(1) == test.labels[rows]
        by_step = [
            float(right[torch.isin(test.labels[rows], torch.tensor(past.classes))].double().mean())
            for past in self.stream.steps[: step.number + 1]
        ]
        return Outcome(
            step=step.number,
            accuracy=float(right.double().mean()),
            accuracies=tuple(by_step),
            seen=len(seen),
            memory=len(self.memory),
            per_class={index: len(part) for index, part in self.memory.kept.items()},
            seconds=seconds,
        )
