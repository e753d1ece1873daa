"""The condensers: each a recipe for the one loop."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from torch import Tensor

from lcmat.condensation import kernels, objectives
from lcmat.condensation.registry import CONDENSERS, CondenserFacts, Recipe

DSA = "color_crop_cutout_flip_scale_rotate"

KERNELS: dict[str, Callable[..., Tensor]] = {
    "dense": kernels.dense_kernel,
    "convolutional": kernels.convolutional_kernel,
}
Follow = Literal["synthetic", "real"]


@CONDENSERS.add(
    "random", "real samples, drawn uniformly: the baseline", facts=CondenserFacts("uniform sampling", "nothing")
)
def random() -> Recipe:
    """The start alone, with nothing learned."""
    return Recipe(start="real")


@CONDENSERS.add(
    "dc",
    "gradient matching by layer, in cosine form, on networks trained on the synthetic samples",
    facts=CondenserFacts("Zhao, Mopuri and Bilen, ICLR 2021", "two gradients, one of them differentiated"),
)
def dc(
    *,
    per_class: int,
    lr: float = 0.1,
    real_batch: int = 256,
    period: int | None = None,
    network_steps: int | None = None,
    follow: Follow = "synthetic",
) -> Recipe:
    """Dataset condensation with gradient matching.

    Args:
        per_class: samples of each class.
        lr: of the samples.
        real_batch: real samples of each class in a step.
        period: steps with one network; per_class, at most 50, if not given.
        network_steps: of its training after each step; 500/per_class, from 10 to 50, if not given.
        follow: what the network is trained on; 'real' allows shards of the classes.
    """
    return Recipe(
        objectives.gradients_by_cosine,
        lr=lr,
        real_batch=real_batch,
        period=min(per_class, 50) if period is None else period,
        follow=follow,
        network_steps=min(50, max(10, 500 // per_class)) if network_steps is None else network_steps,
        network_batch=256,
    )


@CONDENSERS.add(
    "dsa",
    "dc with one differentiable augmentation for real and synthetic samples alike",
    facts=CondenserFacts("Zhao and Bilen, ICML 2021", "as dc"),
)
def dsa(
    *,
    per_class: int,
    lr: float = 0.1,
    real_batch: int = 256,
    period: int | None = None,
    network_steps: int | None = None,
    follow: Follow = "synthetic",
    augmentation: str = DSA,
) -> Recipe:
    """Differentiable Siamese augmentation.

    Args:
        per_class: samples of each class.
        lr: of the samples.
        real_batch: real samples of each class in a step.
        period: steps with one network; per_class, at most 50, if not given.
        network_steps: of its training after each step; 500/per_class, from 10 to 50, if not given.
        follow: what the network is trained on; 'real' allows shards of the classes.
        augmentation: operations, of which one is drawn for each class and step.
    """
    plain = dc(
        per_class=per_class, lr=lr, real_batch=real_batch, period=period, network_steps=network_steps, follow=follow
    )
    return replace(plain, augmentation=augmentation, single=True)


@CONDENSERS.add(
    "dm",
    "mean features matched under random networks",
    facts=CondenserFacts("Zhao and Bilen, WACV 2023", "two forward passes, one of them differentiated"),
)
def dm(*, lr: float = 1.0, real_batch: int = 256, period: int = 1, augmentation: str = DSA) -> Recipe:
    """Distribution matching.

    Args:
        lr: of the samples.
        real_batch: real samples of each class in a step.
        period: steps with one network.
        augmentation: operations, of which one is drawn for each class and step.
    """
    return Recipe(
        objectives.means_of_features,
        looks_at="features",
        lr=lr,
        real_batch=real_batch,
        period=period,
        augmentation=augmentation,
        single=True,
    )


@CONDENSERS.add(
    "kip",
    "kernel inducing points: ridge regression with the kernel of an infinitely wide network",
    facts=CondenserFacts("Nguyen, Chen and Lee, ICLR 2021", "two kernels and a Cholesky factor of all samples"),
)
def kip(
    *,
    per_class: int,
    lr: float = 0.04,
    real_batch: int = 50,
    kernel: Literal["dense", "convolutional"] = "dense",
    depth: int = 3,
    ridge: float = 1e-6,
    learn_labels: bool = False,
    augmentation: str = "",
) -> Recipe:
    """Kernel inducing points.

    Args:
        per_class: samples of each class.
        lr: of Adam.
        real_batch: real samples of each class in a step.
        kernel: the neural tangent kernel of a fully connected network, or of a convolutional one without pools.
        depth: hidden layers of that network.
        ridge: λ, as a share of the mean of the kernel's diagonal.
        learn_labels: whether labels are learned too; the result then has soft labels, and says so.
        augmentation: of real and synthetic samples alike.
    """
    if depth < 1 or not ridge > 0:
        raise ValueError(f"expected a depth of at least 1 and a ridge above 0, got {depth} and {ridge}")
    if kernel not in KERNELS:
        raise ValueError(f"expected kernel to be {' or '.join(map(repr, KERNELS))}, got {kernel!r}")
    return Recipe(
        partial(objectives.ridge_regression, kernel=partial(KERNELS[kernel], depth=depth), ridge=ridge),
        looks_at="inputs",
        lr=lr,
        optimizer="adam",
        real_batch=real_batch,
        synthetic_batch=per_class,
        augmentation=augmentation,
        period=50,
        joint=True,
        learn_labels=learn_labels,
    )


@CONDENSERS.add(
    "lcmat-c",
    "loss-curvature matching: gradients by value and the variance of the last layer's gradients, along real training",
    facts=CondenserFacts("Shin et al., AISTATS 2023", "as dc, with eight training steps of a network"),
)
def lcmat_c(
    *,
    per_class: int,
    rho: float = 0.1,
    lr: float = 0.08,
    real_batch: int = 64,
    period: int = 100,
    network_steps: int = 8,
    head: bool = True,
    augmentation: str = "color_crop_cutout",
    cutmix: float = 0.5,
    longest: float = 0.05,
) -> Recipe:
    """LCMat-C.

    Args:
        per_class: samples of each class; the rate is lr·per_class/10, as the derivative shrinks with their number.
        rho: weight of the variance term.
        lr: of the samples, at 10 of each class.
        real_batch: real samples of each class in a step.
        period: steps with one network.
        network_steps: of its training on real samples after each step, 64 in each.
        head: whether the gradients of the last layer are matched by value as well.
        augmentation: operations, all of which are applied, drawn for each class and step.
        cutmix: probability of CutMix in the network's training.
        longest: how far a sample moves in one step at most, in standard deviations (root mean square).
    """
    if not rho >= 0:
        raise ValueError(f"expected rho of at least 0, got {rho}")
    return Recipe(
        partial(objectives.curvature, rho=rho),
        match_head=head,
        start="noise",
        lr=lr * per_class / 10,
        real_batch=real_batch,
        augmentation=augmentation,
        period=period,
        follow="real",
        network_steps=network_steps,
        network_momentum=0.9,
        network_decay=5e-4,
        cutmix=cutmix,
        longest=longest,
    )
