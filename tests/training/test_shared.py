"""Networks that several pieces of work look with: trained once, charged to each."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from lcmat.training import shared, train
from lcmat.training.shared import Proxies
from samples import same_state, vectors


def make(checkpoint: Path | None) -> nn.Module:
    return train("mlp:width=4", vectors(60), epochs=2, seed=0, checkpoint=checkpoint, device="cpu")


def test_another_process_finds_the_network_and_is_charged_its_seconds(tmp_path: Path) -> None:
    def slow(checkpoint: Path | None) -> nn.Module:
        time.sleep(0.2)
        return make(checkpoint)

    first, saved = Proxies(tmp_path).get("proxy", slow)
    assert saved == 0
    start = time.perf_counter()
    again, saved = Proxies(tmp_path).get("proxy", make)
    assert same_state(first, again)
    assert saved + time.perf_counter() - start >= 0.2


def test_what_was_trained_before_a_kill_is_charged_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The log of a training counts over all its parts, of which this process did the last.
    monkeypatch.setattr(shared, "log_of", lambda _: SimpleNamespace(seconds=100.0))
    for _ in range(2):
        start = time.perf_counter()
        _, saved = Proxies(tmp_path).get("proxy", make)
        assert 100 - (time.perf_counter() - start) <= saved <= 100
