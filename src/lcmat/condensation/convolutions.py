"""Convolutions as products of matrices: with weights of its own for each class, and with few input channels."""

import math
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional, grad

from lcmat.training.inference import full_type

# Tensor cores take 16 bytes at a time: eight numbers in bfloat16.
_EIGHT = 8
# Positions of a convolution that one product of matrices adds up.
_POSITIONS = 1024
# Positions of one class that keep a large device busy by themselves.
_MANY_POSITIONS = 4096


def is_plain(layer: nn.Conv2d) -> bool:
    """Whether a convolution has one group, no gaps, and zeros outside the image."""
    apart = layer.groups > 1 or set(layer.dilation) != {1}
    return not apart and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


class FewChannels(nn.Conv2d):
    """`nn.Conv2d` of images with fewer channels than tensor cores take at a time.

    On CUDA cuDNN has only slow kernels for it; as a product with the patches of each image it takes a fraction of the
    time. Inputs that are differentiated go to cuDNN all the same.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> plain = nn.Conv2d(3, 4, 3, bias=False)
        >>> images = torch.randn(2, 3, 5, 5)
        >>> bool((FewChannels.of(plain)(images) == plain(images)).all())
        True
    """

    @staticmethod
    def suits(layer: nn.Conv2d) -> bool:
        """Whether a convolution is a plain one with few input channels and no bias."""
        return is_plain(layer) and layer.in_channels < _EIGHT and layer.bias is None

    @classmethod
    def of(cls, layer: nn.Conv2d) -> Self:
        """The same convolution with the same weights."""
        # Drawing weights, only to replace them, would move torch's global generator.
        own: Self = nn.utils.skip_init(
            cls, layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, bias=False
        )
        own.weight = layer.weight
        return own

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002, the name in `nn.Conv2d`
        """Images `[n, in, height, width]` -> maps `[n, out, ...]`."""
        fixed = not input.requires_grad and forward_ad.unpack_dual(input).tangent is None
        maps: Tensor = product(self, input) if fixed and input.is_cuda else super().forward(input)
        return maps


def product(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """What a plain convolution without bias gives of inputs that are not differentiated, `[n, out, ...]`."""
    apply: Any = _Product.apply
    maps: Tensor = apply(patches(layer, inputs, len(inputs)), layer.weight).unflatten(2, _sides(layer, inputs))
    return maps


class _Product(torch.autograd.Function):
    """(patches `[n, in·kernel, positions]`, weights) -> `[n, out, positions]`, to be differentiated in the weights.

    Rows of in·kernel = 27 numbers begin at odd addresses, which the fast kernels refuse; so weights and their
    derivatives are laid out the other way round.
    """

    @staticmethod
    def forward(ctx: Any, patches: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(patches, weight)
        rows = weight.flatten(1).mT.contiguous().mT
        return rows.expand(len(patches), -1, -1).bmm(patches)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        patches, weight = ctx.saved_tensors
        sums = (patches @ slopes[0].mT).sum(0, dtype=torch.promote_types(weight.dtype, torch.float32))
        return None, sums.mT.reshape(weight.shape).to(weight.dtype)


def class_gradients(layer: nn.Conv2d, inputs: Tensor, slopes: Tensor, classes: int) -> Tensor:
    """The sum over each class of the gradients in a convolution's weights, `[K, out, in·kernel]`.

    Args:
        layer: a plain one.
        inputs: it was given, `[K·b, in, ...]`.
        slopes: derivatives of the samples' losses in what it gave, `[K·b, out, ...]`.
        classes: K.
    """
    positions = slopes[0, 0].numel()
    if layer.in_channels >= _EIGHT and len(inputs) // classes * positions >= _MANY_POSITIONS:
        # Patches of large classes take longer to copy than all of this.
        pairs = zip(inputs.chunk(classes), slopes.chunk(classes), strict=True)
        stride, padding = layer.stride, layer.padding
        own = [grad.conv2d_weight(seen, layer.weight.shape, slope, stride, padding) for seen, slope in pairs]
        return full_type(torch.stack(own).flatten(2))
    # Some samples at a time: a class's whole sum in one product has too few outputs to keep a large device busy.
    share = math.gcd(len(inputs) // classes, max(1, _POSITIONS // positions))
    groups = len(inputs) // share
    own_slopes = slopes.unflatten(0, (groups, share)).transpose(1, 2).flatten(2)
    seen = patches(layer, inputs, groups)
    # The other way round where rows of the result would begin at odd addresses, as in `_Product`.
    parts: Tensor = (seen @ own_slopes.mT).mT if seen.shape[1] % _EIGHT else own_slopes @ seen.mT
    by_class: Tensor = parts.unflatten(0, (classes, -1))
    return by_class.sum(1, dtype=torch.promote_types(parts.dtype, torch.float32))


def class_outputs(layer: nn.Conv2d, inputs: Tensor, weights: Tensor) -> Tensor:
    """What a convolution without bias would give if each class had weights of its own, `[K·b, out, ...]`.

    Args:
        layer: a plain one.
        inputs: `[K·b, in, ...]`.
        weights: `[K, out, in·kernel]`.
    """
    maps: Tensor = (weights @ patches(layer, inputs, len(weights))).unflatten(2, (-1, *_sides(layer, inputs)))
    return maps.transpose(1, 2).flatten(0, 1)


def patches(layer: nn.Conv2d, inputs: Tensor, groups: int) -> Tensor:
    """What a convolution sees at each position, `[groups, in·kernel, samples·positions]`.

    Grouped convolutions would do without this copy, but go through slow paths of cuDNN; and `functional.unfold`
    launches a kernel for each sample.
    """
    rows, columns = (int(part) for part in layer.padding)
    seen = functional.pad(inputs, (columns, columns, rows, rows))
    for axis in (0, 1):
        seen = seen.unfold(2 + axis, layer.kernel_size[axis], layer.stride[axis])
    by_group: Tensor = seen.unflatten(0, (groups, -1)).permute(0, 2, 5, 6, 1, 3, 4)
    return by_group.flatten(4).flatten(1, 3)


def _sides(layer: nn.Conv2d, inputs: Tensor) -> list[int]:
    """Positions of a convolution along both sides of an image."""
    return [
        (inputs.shape[2 + axis] + 2 * int(layer.padding[axis]) - layer.kernel_size[axis]) // layer.stride[axis] + 1
        for axis in (0, 1)
    ]
