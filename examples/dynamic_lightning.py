"""Dynamic selection under Lightning: a callback that keeps the sampler's state in the checkpoints.

python examples/dynamic_lightning.py        (needs: pip install lightning)
"""

import importlib.util
from typing import Any

INSTALLED = importlib.util.find_spec("lightning") is not None

if INSTALLED:
    import lightning
    import torch
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, TensorDataset

    import lcmat
    from lcmat import dynamic
    from lcmat.training import accuracy

    class DynamicSelection(lightning.Callback):
        """Keeps a sampler's state in the checkpoints, and sees to it that the loader goes by it."""

        def __init__(self, sampler: dynamic.Sampler) -> None:
            self.sampler = sampler

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if dynamic.sampler_of(trainer.train_dataloader) is not self.sampler:
                raise ValueError("the training's DataLoader goes by another sampler")

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            pl_module.log("share of choosing", self.sampler.cost.share)

        def state_dict(self) -> dict[str, Any]:
            return self.sampler.state_dict()

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self.sampler.load_state_dict(state_dict)

    class Classifier(lightning.LightningModule):
        """Any module; its training step takes the index, and uses weights and losses of each sample."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
            self.sampler: dynamic.Sampler | None = None

        def forward(self, inputs: Tensor) -> Tensor:
            logits: Tensor = self.net(inputs)
            return logits

        def training_step(self, batch: list[Tensor], _: int) -> Tensor:
            inputs, labels, index = batch
            losses = nn.functional.cross_entropy(self(inputs), labels, reduction="none")
            assert self.sampler is not None
            self.sampler.record(index, losses)
            return (losses * self.sampler.weights(index)).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def main() -> None:
    data = lcmat.load("digits")
    images = (data.train.inputs.float() / 255 - data.train.mean[0]) / data.train.std[0]
    dataset = TensorDataset(images, data.train.labels)
    model = Classifier()
    model.sampler = dynamic.Sampler(model.net, dataset, "craig", 0.1, every=5, weighted=True)
    loader = DataLoader(dynamic.Indexed(dataset), batch_size=32, sampler=model.sampler)
    trainer = lightning.Trainer(
        max_epochs=20,
        accelerator="cpu",
        callbacks=[DynamicSelection(model.sampler)],
        use_distributed_sampler=False,  # the sampler gives each process its share itself
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    print(f"accuracy {accuracy(model, data.test):.3f} after {model.sampler.cost.turns} choices")


if __name__ == "__main__":
    if INSTALLED:
        main()
    else:
        print("skipped: this example needs Lightning (pip install lightning)")
