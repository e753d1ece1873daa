"""The last linear layer of any model."""

from torch import nn


def find_head(module: nn.Module, name: str | None = None) -> tuple[str, nn.Linear]:
    """The layer whose input are the features and whose output are the logits.

    It is the last `nn.Linear` in the order in which the module lists its parts, which is the order of definition.
    Where the model defines another linear layer after the one it uses last, it must be named. `lcmat.extract` checks
    that the layer's output is the model's output.

    Args:
        module: any model.
        name: of the layer, as in `module.named_modules()`; None finds it.

    Returns:
        The layer's name and the layer.

    Raises:
        ValueError: when there is no such layer.

    Example:
        >>> from torch import nn
        >>> find_head(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
        ('2', Linear(in_features=3, out_features=2, bias=True))
    """
    layers = {key: part for key, part in module.named_modules() if isinstance(part, nn.Linear)}
    if not layers:
        raise ValueError(
            f"expected a model with a linear layer at its end, but {type(module).__name__} has no nn.Linear; end it "
            "with one (a 1 × 1 convolution can be written as one), or compute features and logits yourself and give "
            "lcmat.Signals(features=..., logits=..., labels=...)"
        )
    if name is None:
        name = list(layers)[-1]
    if name not in layers:
        valid = ", ".join(map(repr, layers))
        raise ValueError(f"expected head= as the name of a linear layer of the model, got {name!r}; it has {valid}")
    return name, layers[name]
