"""Dynamic selection under transformers.Trainer: a subclass that loads by the sampler and weighs the losses.

python examples/dynamic_transformers.py        (needs: pip install transformers accelerate)
"""

import importlib.util
from typing import Any

INSTALLED = all(importlib.util.find_spec(name) is not None for name in ("transformers", "accelerate"))

if INSTALLED:
    from pathlib import Path

    import torch
    import transformers
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Dataset, Subset

    import lcmat
    from lcmat import dynamic

    class Texts(Dataset[dict[str, Tensor]]):
        """Sequences of 12 words out of 40; the class decides which words are frequent."""

        def __init__(self, n: int, seed: int) -> None:
            draws = torch.Generator().manual_seed(seed)
            self.labels = torch.arange(n) % 3
            common = 1 + 13 * self.labels[:, None] + torch.randint(0, 13, (n, 12), generator=draws)
            anything = torch.randint(1, 40, (n, 12), generator=draws)
            self.words = torch.where(torch.rand(n, 12, generator=draws) < 0.5, common, anything)

        def __len__(self) -> int:
            return len(self.labels)

        def __getitem__(self, row: int) -> dict[str, Tensor]:
            return {"input_ids": self.words[row], "labels": self.labels[row]}

    def signals(model: nn.Module, rows: Tensor, dataset: Texts) -> lcmat.Signals:
        """What selection needs: the input and the output of the last layer, for these rows."""
        seen: list[Tensor] = []
        layer = model.get_submodule("classifier")
        handle = layer.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output)))
        mode = model.training
        model.eval()
        with torch.no_grad():
            for batch in DataLoader(Subset(dataset, rows.tolist()), batch_size=256):
                model(input_ids=batch["input_ids"].to(next(model.parameters()).device))
        model.train(mode)
        handle.remove()
        return lcmat.Signals(torch.cat(seen[::2]).cpu(), torch.cat(seen[1::2]).cpu(), dataset.labels[rows])

    class DynamicTrainer(transformers.Trainer):
        """A Trainer whose epochs visit what a sampler chooses."""

        def __init__(self, *args: Any, sampler: dynamic.Sampler, **options: Any) -> None:
            super().__init__(*args, **options)
            self.sampler = sampler

        def _get_train_sampler(self, train_dataset: Any = None) -> dynamic.Sampler:
            return self.sampler

        def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
            inputs = dict(inputs)
            index, labels = inputs.pop("index", None), inputs.pop("labels")
            outputs = model(**inputs)
            losses = nn.functional.cross_entropy(outputs.logits, labels, reduction="none")
            if index is not None:  # evaluation loads by no sampler
                self.sampler.record(index, losses)
                losses = losses * self.sampler.weights(index)
            return (losses.mean(), outputs) if return_outputs else losses.mean()

        def _save_checkpoint(self, *args: Any, **options: Any) -> None:
            super()._save_checkpoint(*args, **options)
            folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
            torch.save(self.sampler.state_dict(), folder / "sampler.pt")


def main() -> None:
    train, test = Texts(600, seed=0), Texts(150, seed=1)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=40, num_labels=3, **shape))
    sampler = dynamic.Sampler(
        model, train, "herding", 0.3, every=2, signals=lambda model, rows: signals(model, rows, train)
    )
    trainer = DynamicTrainer(
        model=model,
        train_dataset=dynamic.Indexed(train),
        sampler=sampler,
        args=transformers.TrainingArguments(
            output_dir="trained",
            num_train_epochs=8,
            per_device_train_batch_size=32,
            learning_rate=5e-3,
            remove_unused_columns=False,  # or the index would be removed
            save_strategy="epoch",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
    )
    trainer.train()
    found = signals(model, torch.arange(len(test)), test)
    accuracy = float((found.need("logits").argmax(1) == test.labels).double().mean())
    print(f"accuracy {accuracy:.3f} after {sampler.cost.turns} choices")


if __name__ == "__main__":
    if INSTALLED:
        main()
    else:
        print("skipped: this example needs transformers and accelerate (pip install transformers accelerate)")
