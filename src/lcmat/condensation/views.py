"""What a network says of samples of several classes: all classes in one pass, reduced class by class.

The mean gradient of a class comes from a layer's factors: its inputs and the gradients at its outputs, which one pass
over all classes gives. Only their product is formed for each class, as batched products of matrices.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

from lcmat.condensation.convolutions import class_gradients, class_outputs, is_plain
from lcmat.training.inference import full_type
from lcmat.training.inputs import input_type

_NOTHING = torch.empty(0)


@dataclass(frozen=True, eq=False)
class View:
    """What is known of a batch with b samples of each of K classes; empty what was not asked for.

    Attributes:
        inputs: what the network was fed with, `[K, b, ...]`.
        targets: distributions over the classes, `[K, b, C]`.
        gradients: of the mean loss of each class in the weights of each matched layer, `[K, out, in]`.
        residuals: r, the derivative of each sample's loss in its logits, `[K, b, C]`.
        head_inputs: a = [f, 1], `[K, b, d+1]`; f where the head has no bias.
        features: f, the input of the head, `[K, b, d]`.
    """

    inputs: Tensor
    targets: Tensor
    gradients: tuple[Tensor, ...] = ()
    residuals: Tensor = _NOTHING
    head_inputs: Tensor = _NOTHING
    features: Tensor = _NOTHING


def matched_layers(net: nn.Module, *, head: bool) -> list[nn.Module]:
    """The layers whose gradients are matched: all convolutions and linear layers, with or without the last one.

    Biases and the weights of normalisations are not matched, as in the code of DC and of Efficient Condensation. A
    network for feature vectors has no convolutions; its hidden layers are matched.

    Raises:
        ValueError: for a network with batch statistics, or convolutions with groups or gaps.
    """
    check_network(net)
    layers: list[nn.Module] = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    return layers if head or len(layers) == 1 else layers[:-1]


def check_network(net: nn.Module) -> None:
    """Refuse a network whose samples see each other.

    Raises:
        ValueError: for a network with batch statistics, or convolutions with groups or gaps.
    """
    for part in net.modules():
        batch_norm = isinstance(part, nn.modules.batchnorm._BatchNorm)
        if batch_norm or (isinstance(part, nn.Conv2d) and not is_plain(part)):
            raise ValueError(
                f"condensation needs a network without batch normalisation and with plain convolutions, such as "
                f"'convnet' or 'mlp', but this one has {type(part).__name__}; train others on the result"
            )


def view_gradients(net: nn.Module, layers: Sequence[nn.Module], inputs: Tensor, targets: Tensor) -> View:
    """The mean gradient of each class in the weights of some layers, and the last layer's factors.

    Nothing of it can be differentiated; `along` is for that.

    Args:
        net: without batch statistics, with `head`; its weights' type is the one that is computed in.
        layers: whose gradients are wanted, in the network's order.
        inputs: `[K, b, ...]`.
        targets: `[K, b, C]`.
    """
    classes, samples = inputs.shape[:2]
    head = net.get_submodule("head")
    seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def remember(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        seen[layer] = (given[0].detach(), output)

    wanted = [*layers, *([] if head in layers else [head])]
    with torch.enable_grad(), _hooked(wanted, remember):
        logits = full_type(net(inputs.detach().flatten(0, 1).to(input_type(net))))
        losses = functional.cross_entropy(logits, targets.detach().flatten(0, 1).to(logits.dtype), reduction="sum")
        slopes = torch.autograd.grad(losses, [seen[layer][1] for layer in wanted])
    factors = {layer: (seen[layer][0], slope) for layer, slope in zip(wanted, slopes, strict=True)}
    features, residuals = (full_type(part).unflatten(0, (classes, samples)) for part in factors[head])
    return View(
        inputs.detach(),
        targets.detach(),
        gradients=tuple(_class_gradients(layer, *factors[layer], classes) for layer in layers),
        residuals=residuals,
        head_inputs=_with_bias(head, features),
        features=features,
    )


def along(net: nn.Module, layers: Sequence[nn.Module], inputs: Tensor, targets: Tensor, direction: View) -> Tensor:
    """⟨direction, view⟩ with the view that `view_gradients` gives of these samples, which can be differentiated once.

    With the direction v_k in the weights W, ⟨v_k, g_k⟩ is the derivative of the loss of class k at W + ε·v_k in ε.
    That takes one forward pass in dual numbers in place of a backward pass that can be differentiated itself, of
    which normalisations make many times their number of operations. The derivative of an objective D in the samples
    is that of this sum along D's derivative in the view.

    Args:
        net: as in `view_gradients`.
        layers: as in `view_gradients`.
        inputs: `[K, b, ...]`.
        targets: `[K, b, C]`.
        direction: in gradients, residuals, head_inputs and features.
    """
    _load_dual_numbers()
    classes, samples = inputs.shape[:2]
    head = net.get_submodule("head")
    directions = dict(zip(layers, direction.gradients, strict=True))
    features: list[Tensor] = []

    def turn(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        value = forward_ad.unpack_dual(given[0]).primal
        if layer is head:
            features.append(value.unflatten(0, (classes, samples)))
        if layer not in directions:
            return output
        whole, tangent = forward_ad.unpack_dual(output)
        own = _class_outputs(layer, value, directions[layer])
        changed: Tensor = forward_ad.make_dual(whole, own if tangent is None else tangent + own)
        return changed

    with forward_ad.dual_level(), _hooked([*layers, head], turn):
        logits, tangent = forward_ad.unpack_dual(net(inputs.flatten(0, 1)))
        assert tangent is not None
        losses = functional.cross_entropy(logits, targets.flatten(0, 1).to(logits.dtype), reduction="sum")
        [slopes] = torch.autograd.grad(losses, [logits], create_graph=True)
    residuals = slopes.unflatten(0, (classes, samples))
    pairs = [
        (direction.residuals, residuals),
        (direction.head_inputs, _with_bias(head, features[0])),
        (direction.features, features[0]),
    ]
    return torch.stack([(slopes * tangent).sum() / samples, *[(a * b).sum() for a, b in pairs]]).sum()


def slope(objective: Callable[[View], Tensor], view: View) -> tuple[Tensor, View]:
    """The sum of an objective, and its derivatives in the gradients, residuals, head_inputs and features of a view."""
    count = len(view.gradients)
    parts = (*view.gradients, view.residuals, view.head_inputs, view.features)
    leaves = [part.detach().requires_grad_() for part in parts]
    value = objective(View(view.inputs, view.targets, tuple(leaves[:count]), *leaves[count:])).sum()
    found = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return value.detach(), View(view.inputs, view.targets, found[:count], *found[count:])


def view_features(net: nn.Module, inputs: Tensor, targets: Tensor) -> View:
    """The input of the head for every sample, which can be differentiated.

    Args:
        net: with `body`; its weights' type is the one that is computed in.
        inputs: `[K, b, ...]`.
        targets: `[K, b, C]`.
    """
    body = net.get_submodule("body")
    features = body(inputs.flatten(0, 1).to(input_type(net)))
    return View(inputs, targets, features=full_type(features).unflatten(0, inputs.shape[:2]))


def _class_gradients(layer: nn.Module, inputs: Tensor, slopes: Tensor, classes: int) -> Tensor:
    """The mean over each class of the gradients in one layer's weights, `[K, out, in]`.

    Args:
        layer: a convolution or a linear layer.
        inputs: it was given, `[K·b, ...]`.
        slopes: derivatives of the samples' losses in what it gave, `[K·b, ...]`.
        classes: K.
    """
    samples = len(inputs) // classes
    if isinstance(layer, nn.Linear):
        whole: Tensor = slopes.unflatten(0, (classes, samples)).mT @ inputs.unflatten(0, (classes, samples))
        return full_type(whole) / samples
    assert isinstance(layer, nn.Conv2d)
    return class_gradients(layer, inputs, slopes, classes) / samples


def _class_outputs(layer: nn.Module, inputs: Tensor, weights: Tensor) -> Tensor:
    """What a layer without bias would give if each class had weights of its own, `[K·b, ...]`.

    Args:
        layer: a convolution or a linear layer.
        inputs: `[K·b, ...]`.
        weights: `[K, out, in]`.
    """
    classes = len(weights)
    if isinstance(layer, nn.Linear):
        own: Tensor = inputs.unflatten(0, (classes, -1)) @ weights.mT
        return own.flatten(0, 1)
    assert isinstance(layer, nn.Conv2d)
    return class_outputs(layer, inputs, weights)


def _with_bias(head: nn.Module, features: Tensor) -> Tensor:
    if getattr(head, "bias", None) is None:
        return features
    return torch.cat([features, features.new_ones(*features.shape[:-1], 1)], -1)


@cache
def _load_dual_numbers() -> None:
    """Make the first dual number, for which torch compiles some formulas in a way that torch itself calls outdated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with forward_ad.dual_level():
            forward_ad.make_dual(torch.zeros(()), torch.zeros(()))


@contextmanager
def _hooked(
    layers: Sequence[nn.Module], hook: Callable[[nn.Module, tuple[Tensor, ...], Tensor], Any]
) -> Iterator[None]:
    """The hook sees, and may replace, the output of each layer in the forward pass inside the block."""
    handles = [layer.register_forward_hook(hook) for layer in dict.fromkeys(layers)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
