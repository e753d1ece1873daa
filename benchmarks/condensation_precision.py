"""What rounding to bfloat16 does to LCMat-C: how far it moves the derivative in the samples, beside another draw.

One network looks at the same real samples in float32 and in bfloat16, then in float32 at another draw of them and of
the augmentation; once as it begins, once after some training. The synthetic samples stay where they are.

    python benchmarks/condensation_precision.py cifar10 [--per-class 10] [--draws 5]
"""

import argparse

import torch
from torch import Tensor

import lcmat
from lcmat import runtime
from lcmat.condensation.loop import Loop
from lcmat.condensation.plan import make_plan
from lcmat.types import Data


def make_loop(data: Data, per_class: int, net: str, device: torch.device, precision: str) -> Loop:
    """A condensation whose steps are too small to see."""
    plan = make_plan(
        data, "lcmat-c", {"lr": 1e-9}, per_class=per_class, net=net, factor=1, start="noise", labels="hard",
        classes=None, together=None, seed=0,
    )  # fmt: skip
    return Loop(data, plan, device, precision=precision, graph=False)


def derivative(loop: Loop) -> Tensor:
    """In the samples, at the next draw of real ones."""
    loop.match()
    assert loop.stored.grad is not None
    return loop.stored.grad.double()


def compare(exact: Loop, rounded: Loop, draws: int) -> tuple[float, float]:
    """Mean distances of two derivatives, relative: by rounding, and by another draw."""
    pairs = [(derivative(exact), derivative(rounded)) for _ in range(draws + 1)]
    truth = [own for own, _ in pairs]
    by_rounding = [float((own - other).norm() / own.norm()) for own, other in pairs]
    by_draw = [float((a - b).norm() / a.norm()) for a, b in zip(truth[1:], truth[:-1], strict=True)]
    return sum(by_rounding) / len(by_rounding), sum(by_draw) / len(by_draw)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="anything that lcmat.load reads")
    parser.add_argument("--per-class", type=int, default=10)
    parser.add_argument("--net", default="convnet")
    parser.add_argument("--draws", type=int, default=5, help="draws of real samples beside the first")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of eight training steps before the second row")
    given = parser.parse_args()
    device = runtime.pick_device()
    data = lcmat.load(given.data).train
    exact, rounded = (make_loop(data, given.per_class, given.net, device, name) for name in ("float32", "bf16"))
    print(f"{runtime.machine()}, torch {torch.__version__}; {len(data):,} samples, {given.per_class} of each class")
    print(f"{'network':32}{'rounding':>10}{'other draw':>12}")
    for rounds in (0, given.rounds):
        for _ in range(rounds):
            exact.train()
        for part in (rounded.follower.net, rounded.follower.quick):
            part.load_state_dict(exact.follower.net.state_dict())
        by_rounding, by_draw = compare(exact, rounded, given.draws)
        print(f"{f'after {8 * rounds} training steps':32}{by_rounding:10.2%}{by_draw:12.1%}")


if __name__ == "__main__":
    main()
