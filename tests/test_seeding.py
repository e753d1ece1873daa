import numpy as np
import pytest
import torch

from lcmat import seeding


def test_derived_seeds_are_fixed_forever() -> None:
    # A changed value would silently change every published subset.
    assert seeding.derive(0, "training") == 5_154_316_724_361_861_940
    assert seeding.derive(3, "selection", 2) == 4_854_872_977_192_870_925


def test_any_whole_number_is_a_seed_and_nothing_else() -> None:
    assert seeding.derive(np.int64(7), "x") == seeding.derive(7, "x")  # type: ignore[arg-type]
    for seed in (1.5, "x", None):
        with pytest.raises(TypeError, match=f"expected a whole number as seed, got {seed!r}"):
            seeding.derive(seed)  # type: ignore[arg-type]


def test_purposes_do_not_run_into_each_other() -> None:
    seeds = {seeding.derive(0), seeding.derive(0, "a", "b"), seeding.derive(0, "ab"), seeding.derive(1, "a", "b")}
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_generators_leave_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    draws = [torch.rand(4, generator=seeding.generator(5, "x")) for _ in range(2)]
    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)


def test_isolated_seeds_inside_and_restores_outside() -> None:
    torch.rand(1)
    before = torch.get_rng_state()
    draws = []
    for _ in range(2):
        with seeding.isolated(1, "weights"):
            draws.append(torch.rand(3))
    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)


def test_isolated_restores_after_an_error() -> None:
    def fail() -> None:
        with seeding.isolated(1):
            torch.rand(1)
            raise KeyError

    before = torch.get_rng_state()
    with pytest.raises(KeyError):
        fail()
    assert torch.equal(torch.get_rng_state(), before)
