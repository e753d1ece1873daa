import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dynamic.cases import small
from lcmat.dynamic import Sampler

PROGRAM = """
import sys, torch, torch.distributed as dist
from dynamic.cases import losses_of, small
from lcmat.dynamic import Sampler

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
rank = dist.get_rank()
data, model = small()
if rank:  # the picks must be those of the first rank, whatever this one would choose
    torch.nn.init.zeros_(model.head.weight)
found = []
for method, extra in (("craig", {"fraction": 0.25}), ("infobatch", {"epochs": 9})):
    sampler = Sampler(model, data, method, weighted=method == "craig", **extra)
    for epoch in range(3):
        own = torch.tensor(list(sampler))
        # Each rank has losses of its own share only.
        sampler.record(own, 0.1 + (own % 7) * 0.5)
        found.append((sampler.picks.tolist(), own.tolist(), sampler.weights(sampler.picks).tolist(), len(sampler)))
failing = Sampler(model, data, "craig", 0.2, signals=lambda model, rows: 1 / 0)
try:
    list(failing)
except (ZeroDivisionError, RuntimeError) as error:
    found.append(type(error).__name__)
torch.save(found, sys.argv[1] + f".{rank}")
dist.destroy_process_group()
"""


def test_two_processes_agree_on_the_picks_and_share_them(tmp_path: Path) -> None:
    meeting = tmp_path / "meeting"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    root = Path(__file__).parents[1]
    environment = {"PYTHONPATH": f"{root}:{root.parent / 'src'}", "PATH": "/usr/bin:/bin", "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), str(meeting), str(rank)], env=environment, stderr=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    first, second = (torch.load(f"{meeting}.{rank}", weights_only=True) for rank in (0, 1))
    assert (first.pop(), second.pop()) == ("ZeroDivisionError", "RuntimeError")
    for (picks, own, weights, length), (other_picks, other_own, other_weights, _) in zip(first, second, strict=True):
        assert picks == other_picks
        assert weights == other_weights
        assert len(own) == len(other_own) == length
        assert set(own) | set(other_own) == set(picks)
        assert len(own) + len(other_own) - len(picks) in {0, 1}
    # What both ranks recorded counts: rows 0, 7, 14, … have the smallest loss, whoever visited them.
    pruned = set(range(60)) - set(first[4][0])
    assert pruned
    assert all(0.1 + row % 7 * 0.5 < 1.6 for row in pruned)
    data, model = small()
    alone = Sampler(model, data, "craig", 0.25)
    list(alone)
    assert first[0][0] == alone.picks.tolist()


@pytest.mark.parametrize("world", [2, 3, 7])
def test_shares_without_a_process_group_cover_the_picks(world: int) -> None:
    data, model = small()
    samplers = [Sampler(model, data, "herding", 0.2, rank=rank, world=world) for rank in range(world)]
    lengths = {len(sampler) for sampler in samplers}
    shares = [list(sampler) for sampler in samplers]
    assert lengths == {len(share) for share in shares} == {-(-12 // world)}
    assert {row for share in shares for row in share} == set(samplers[0].picks.tolist())
