"""Texts: embed them with whatever you like, and keep the few that cover all.

python examples/text_embeddings.py        (needs: pip install lcmat[demo], for scikit-learn)
"""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import lcmat

# Stands in for your texts: 300 short messages about three things.
THINGS = {
    "weather": "rain sun wind storm cloud cold warm snow umbrella forecast",
    "food": "bread soup rice cheese apple dinner cook taste sweet kitchen",
    "travel": "train ticket station road luggage map hotel border plane bridge",
}
draws = np.random.default_rng(0)
topics = draws.integers(0, 3, 300)
texts = [" ".join(draws.choice(list(THINGS.values())[topic].split(), 6)) for topic in topics]


def embed(sentences: list[str]) -> np.ndarray:
    """Any embedding will do; a sentence transformer's `model.encode(sentences)` fits in here."""
    counts = TfidfVectorizer().fit_transform(sentences)
    return np.asarray(TruncatedSVD(16, random_state=0).fit_transform(counts))


embeddings = embed(texts)

# Without labels: the messages that are farthest apart.
spread = lcmat.select(lcmat.Signals(features=embeddings), "k-center", count=5)
print("to label first:", [texts[row] for row in spread][:2])

# With labels: any linear classifier on the embeddings gives the logits that gradients are made of.
classifier = LogisticRegression().fit(embeddings, topics)
signals = lcmat.Signals(embeddings, classifier.decision_function(embeddings), topics)
kept = lcmat.select(signals, "lcmat-s", fraction=0.05)
print(f"kept {len(kept)} of {kept.n}, by topic {kept.per_class}")

rows = list(kept)
small = LogisticRegression().fit(embeddings[rows], topics[rows])
print(f"trained on {len(rows)}: {small.score(embeddings, topics):.0%} right on all {kept.n}")
