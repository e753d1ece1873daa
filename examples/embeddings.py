"""Text, tables, anything: select from embeddings and logits that another program computed.

python examples/embeddings.py
"""

import numpy as np

import lcmat

# What a language model might give for 500 sentences of four topics: an embedding and the topic's logits for each.
draws = np.random.default_rng(0)
topics = draws.integers(0, 4, 500)
centres = draws.normal(size=(4, 16))
embeddings = centres[topics] + draws.normal(size=(500, 16))
logits = embeddings @ centres.T

with_model = lcmat.select(lcmat.Signals(embeddings, logits, topics), "lcmat-s", fraction=[0.02, 0.1], temperature=4.0)
print("lcmat-s keeps", [len(subset) for subset in with_model], "samples")

# Methods that look at features alone need neither logits nor labels.
unlabelled = lcmat.select(lcmat.Signals(features=embeddings), "k-center", count=10)
print("k-center keeps rows", list(unlabelled))

with_model[0].save("kept")
print("saved:", lcmat.load_subset("kept").method)
