"""Pictures in folders: load them, keep the twentieth part that is worth it, judge it, hand it on.

python examples/own_images.py
"""

from pathlib import Path

import torch
from PIL import Image

import lcmat

# Stands in for your pictures: shapes/train/CLASS/*.png and shapes/test/CLASS/*.png, any size, any format.
draws = torch.Generator().manual_seed(0)
for part, count in (("train", 60), ("test", 20)):
    for kind in ("row", "column", "spot"):
        folder = Path("shapes") / part / kind
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            picture = torch.randint(0, 120, (16, 16), generator=draws, dtype=torch.uint8)
            at, beside = torch.randint(2, 14, (2,), generator=draws).tolist()
            if kind == "row":
                picture[at] = 255
            elif kind == "column":
                picture[:, at] = 255
            else:
                picture[at - 2 : at + 2, beside - 2 : beside + 2] = 255
            Image.fromarray(picture.numpy()).save(folder / f"{number}.png")

data = lcmat.load("shapes", flip=False)  # says what it found; a mirrored row is still a row, so True would do as well

# A small network looks at all pictures; then the method chooses.
subsets = []
for seed in range(2):  # as many as you can spare: each is an independent run
    proxy = lcmat.train("convnet:width=8,depth=2", data.train, epochs=3, seed=seed)
    subsets.append(lcmat.select(lcmat.extract(proxy, data.train), "lcmat-s", fraction=0.1, seed=seed))

# Fresh networks on what was kept, and on random pictures of the same number: the difference is what it was worth.
report = lcmat.evaluate(data, {"lcmat-s": subsets}, nets="convnet:width=8,depth=2", epochs=20, seeds=range(2))
print("\n".join(report.headline()))
report.save_html("report.html")

subsets[0].save("kept")
small = lcmat.load_subset("kept").apply(data.train)
print("train on these files:", *small.names[:3], "...")
