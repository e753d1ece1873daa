"""A plain PyTorch loop that trains on what is worth it now: three lines to add.

python examples/dynamic_loop.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lcmat
from lcmat import dynamic
from lcmat.training import accuracy

data = lcmat.load("digits")
images = (data.train.inputs.float() / 255 - data.train.mean[0]) / data.train.std[0]
dataset = TensorDataset(images, data.train.labels)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

sampler = dynamic.Sampler(model, dataset, "craig", 0.1, every=5, weighted=True)  # 1
loader = DataLoader(dynamic.Indexed(dataset), batch_size=32, sampler=sampler)  # 2: with sampler=, without shuffle=
for _ in range(20):
    for inputs, labels, index in loader:
        losses = nn.functional.cross_entropy(model(inputs), labels, reduction="none")
        sampler.record(index, losses)  # 3: for the methods that go by losses, and for the count of seconds
        optimizer.zero_grad()
        (losses * sampler.weights(index)).mean().backward()
        optimizer.step()

cost = sampler.cost
print(f"accuracy {accuracy(model, data.test):.3f}; {cost.turns} choices took {100 * cost.share:.0f} % of the time")
torch.save(
    {"model": model.state_dict(), "sampler": sampler.state_dict()}, "checkpoint.pt"
)  # goes on with the same picks
