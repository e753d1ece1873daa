"""Any selector of lcmat as Avalanche's exemplar selection strategy.

python examples/replay_avalanche.py        (needs: pip install avalanche-lib)
"""

import importlib.util
from typing import Any

INSTALLED = importlib.util.find_spec("avalanche") is not None

if INSTALLED:
    import torch
    from avalanche.benchmarks.scenarios.deprecated.generators import tensors_benchmark
    from avalanche.models import SimpleMLP
    from avalanche.training import Naive
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.storage_policy import ExemplarsSelectionStrategy, ParametricBuffer
    from torch import Tensor, nn
    from torch.utils.data import DataLoader

    import lcmat
    from lcmat.networks import find_head
    from lcmat.training import accuracy

    class Exemplars(ExemplarsSelectionStrategy):
        """Keeps what a selector picks first; Avalanche cuts the order from its end as the memory shrinks."""

        def __init__(self, method: str = "lcmat-s", **options: Any) -> None:
            self.method = method
            self.options = options

        def make_sorted_indices(self, strategy: Any, data: Any) -> list[int]:
            signals = read_signals(strategy.model, data, strategy.device)
            order = lcmat.select(signals, self.method, count=len(data), balance="none", **self.options)
            return list(order)

    def read_signals(model: nn.Module, data: Any, device: Any) -> lcmat.Signals:
        """The input and the output of the model's last layer for every sample, in order."""
        _, layer = find_head(model)
        seen: list[Tensor] = []
        labels: list[Tensor] = []
        handle = layer.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output)))
        mode = model.training
        model.eval()
        with torch.no_grad():
            for inputs, classes, *_ in DataLoader(data, batch_size=256):
                model(inputs.to(device))
                labels.append(classes)
        model.train(mode)
        handle.remove()
        return lcmat.Signals(torch.cat(seen[::2]).cpu(), torch.cat(seen[1::2]).cpu(), torch.cat(labels))


def main() -> None:
    data = lcmat.load("digits")

    def steps(part: Any) -> list[tuple[Tensor, Tensor]]:
        inputs = (part.inputs.float() / 255 - data.train.mean[0]) / data.train.std[0]
        rows = [(part.labels // 2 == step).nonzero().flatten() for step in range(5)]
        return [(inputs[own], part.labels[own]) for own in rows]

    benchmark = tensors_benchmark(train_tensors=steps(data.train), test_tensors=steps(data.test), task_labels=[0] * 5)
    for method in ("herding", "uniform"):
        torch.manual_seed(0)
        model = SimpleMLP(num_classes=10, input_size=64, hidden_size=64)
        # One group for each class, so that a selector sees the samples of one class at a time.
        memory = ParametricBuffer(max_size=100, groupby="class", selection_strategy=Exemplars(method))
        strategy = Naive(
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
            train_mb_size=32,
            train_epochs=5,
            plugins=[ReplayPlugin(mem_size=100, storage_policy=memory)],
            evaluator=None,
        )
        for experience in benchmark.train_stream:
            strategy.train(experience)
        print(f"{method}: {accuracy(model, data.test):.3f} after the last step, {len(memory.buffer)} samples kept")


if __name__ == "__main__":
    if INSTALLED:
        main()
    else:
        print("skipped: this example needs Avalanche (pip install avalanche-lib)")
