"""Class-incremental learning with a memory of ten samples a class, and a way of filling it of your own.

python examples/replay_memory.py
"""

from dataclasses import dataclass
from typing import Any

import lcmat
from lcmat import continual

data = lcmat.load("digits")
settings: dict[str, Any] = {"net": "convnet:width=16", "batch_size": 32, "seeds": (0,)}

# The paper's protocol: after each of five steps a fresh network learns from the memory alone.
study = continual.run(data, ("lcmat-s", "uniform"), steps=5, per_class=10, epochs=15, **settings)
print(study.table().split("\n\n")[0])


@dataclass(frozen=True)
class Brightest:
    """A way of filling of one's own, which needs no more than this form: the brightest images of each class."""

    name: str = "brightest"
    kind: str = "selection"
    looks: bool = False  # at a model
    needs_record: bool = False

    def describe(self) -> dict[str, Any]:
        return {"fill": self.name}

    def fill(self, asked: continual.Asked) -> dict[int, continual.Kept]:
        images, labels = asked.data.inputs, asked.data.labels
        order = images.flatten(1).float().mean(1).argsort(descending=True)
        return {
            index: continual.Kept(images[order[labels[order] == index][:count]])
            for index, count in asked.amounts.items()
        }


# One network that goes on learning, with new data and samples from a memory of 60 in equal parts.
replay = continual.run(data, (Brightest(),), steps=5, total=60, protocol="replay", epochs=3, **settings)
print(f"after the last step: {replay.rows[0].last[0]:.3f}, forgetting {replay.rows[0].forgetting.mean:.3f}")
