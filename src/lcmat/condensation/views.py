"""What a network says of samples of several classes: all classes in one pass, reduced class by class.

The mean gradient of a class comes from a layer's factors: its inputs and the gradients at its outputs, which one pass
over all classes gives. Only their product is formed for each class, as one grouped convolution or one batched product.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from lcmat.training import precision as number_formats

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
        ValueError: for a network with batch statistics or grouped convolutions.
    """
    check_network(net)
    layers: list[nn.Module] = [part for part in net.modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    return layers if head or len(layers) == 1 else layers[:-1]


def check_network(net: nn.Module) -> None:
    """Refuse a network whose samples see each other.

    Raises:
        ValueError: for a network with batch statistics or grouped convolutions.
    """
    for part in net.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) or (isinstance(part, nn.Conv2d) and part.groups > 1):
            raise ValueError(
                f"condensation needs a network without batch normalisation and grouped convolutions, such as "
                f"'convnet' or 'mlp', but this one has {type(part).__name__}; train others on the result"
            )


def view_gradients(
    net: nn.Module,
    layers: Sequence[nn.Module],
    inputs: Tensor,
    targets: Tensor,
    *,
    differentiable: bool,
    precision: str,
) -> View:
    """The mean gradient of each class in the weights of some layers, and the last layer's factors.

    Args:
        net: without batch statistics, with `head`.
        layers: whose gradients are wanted, in the network's order.
        inputs: `[K, b, ...]`.
        targets: `[K, b, C]`.
        differentiable: whether derivatives in the inputs (and targets) will be taken.
        precision: of the forward pass.
    """
    classes, samples = inputs.shape[:2]
    head = net.get_submodule("head")
    wanted = [*layers, *([] if head in layers else [head])]
    with _watching(wanted) as seen:
        with number_formats.autocast(precision, inputs.device):
            logits = net(inputs.flatten(0, 1))
        losses = functional.cross_entropy(_full(logits), targets.flatten(0, 1).to(_full(logits).dtype), reduction="sum")
        pairs = [seen[layer] for layer in wanted]
        outputs = torch.autograd.grad(losses, [output for _, output in pairs], create_graph=differentiable)
    factors = {
        layer: (_full(given), _full(gradient))
        for layer, (given, _), gradient in zip(wanted, pairs, outputs, strict=True)
    }
    features, residuals = (part.unflatten(0, (classes, samples)) for part in factors[head])
    view = View(
        inputs,
        targets,
        gradients=tuple(_class_gradients(layer, *factors[layer], classes) for layer in layers),
        residuals=residuals,
        head_inputs=_with_bias(head, features),
        features=features,
    )
    return view if differentiable else _detached(view)


def view_features(net: nn.Module, inputs: Tensor, targets: Tensor, *, differentiable: bool, precision: str) -> View:
    """The input of the head for every sample.

    Args:
        net: with `features`.
        inputs: `[K, b, ...]`.
        targets: `[K, b, C]`.
        differentiable: whether derivatives in the inputs will be taken.
        precision: of the forward pass.
    """
    body = net.get_submodule("body")
    with torch.set_grad_enabled(differentiable), number_formats.autocast(precision, inputs.device):
        features = body(inputs.flatten(0, 1))
    return View(inputs, targets, features=_full(features).unflatten(0, inputs.shape[:2]))


def _class_gradients(layer: nn.Module, inputs: Tensor, outputs: Tensor, classes: int) -> Tensor:
    """The mean over each class of the gradients in one layer's weights, `[K, out, in]`.

    Args:
        layer: a convolution or a linear layer.
        inputs: it was given, `[K·b, ...]`.
        outputs: derivatives of the samples' losses in what it gave, `[K·b, ...]`.
        classes: K.
    """
    samples = len(inputs) // classes
    if isinstance(layer, nn.Linear):
        own: Tensor = outputs.unflatten(0, (classes, samples)).mT @ inputs.unflatten(0, (classes, samples))
        return own / samples
    assert isinstance(layer, nn.Conv2d)
    shape = (classes * layer.out_channels, layer.in_channels, *layer.kernel_size)
    # Classes stand side by side as channels: the gradient of a convolution with one group for each class.
    gradient: Tensor = conv2d_weight(
        _side_by_side(inputs, classes),
        shape,
        _side_by_side(outputs, classes),
        layer.stride,
        layer.padding,
        layer.dilation,
        groups=classes,
    )
    return gradient.reshape(classes, layer.out_channels, -1) / samples


def _side_by_side(maps: Tensor, classes: int) -> Tensor:
    """Maps `[K·b, c, h, w]` -> `[b, K·c, h, w]`."""
    apart: Tensor = maps.unflatten(0, (classes, -1))
    return apart.transpose(0, 1).flatten(1, 2)


def _with_bias(head: nn.Module, features: Tensor) -> Tensor:
    if getattr(head, "bias", None) is None:
        return features
    return torch.cat([features, features.new_ones(*features.shape[:-1], 1)], -1)


def _full(values: Tensor) -> Tensor:
    """The values in single or double precision."""
    return values if values.dtype == torch.float64 else values.float()


def _detached(view: View) -> View:
    return View(
        view.inputs,
        view.targets,
        tuple(part.detach() for part in view.gradients),
        view.residuals.detach(),
        view.head_inputs.detach(),
        view.features.detach(),
    )


@contextmanager
def _watching(layers: Sequence[nn.Module]) -> Iterator[dict[nn.Module, tuple[Tensor, Tensor]]]:
    """Input and output of each layer in the forward pass inside the block."""
    seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def remember(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        seen[layer] = (given[0], output)

    handles = [layer.register_forward_hook(remember) for layer in layers]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
