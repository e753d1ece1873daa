"""A data set and a network of your own: any torch Dataset, any nn.Module that ends in a linear layer.

python examples/own_data_and_model.py
"""

import torch
from torch import nn
from torch.utils.data import Subset, TensorDataset

import lcmat

# Three kinds of 12 × 12 grey pictures: a bright row, a bright column, noise alone.
draws = torch.Generator().manual_seed(0)
labels = torch.arange(300) % 3
pictures = torch.randint(0, 150, (300, 1, 12, 12), generator=draws, dtype=torch.uint8)
for index, label in enumerate(labels.tolist()):
    place = int(torch.randint(0, 12, (), generator=draws))
    if label == 0:
        pictures[index, 0, place] = 255
    elif label == 1:
        pictures[index, 0, :, place] = 255
dataset = TensorDataset(pictures[:240], labels[:240])
held_out = TensorDataset(pictures[240:], labels[240:])

net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
    nn.Flatten(), nn.Linear(32, 3),
)  # fmt: skip

data = lcmat.load((dataset, held_out), flip=False)
model = lcmat.train(net, data.train, epochs=4, lr=0.05, batch_size=32)
signals = lcmat.extract(model, data.train)
subset = lcmat.select(signals, "lcmat-s", count=30)
print(f"kept {len(subset)} of {subset.n}, by class {subset.per_class}")

# A subset is a plain sequence of indices, so the data set itself can be cut with it.
kept = Subset(dataset, subset)
print(f"first kept sample: row {subset[0]}, label {int(kept[0][1])}")
