"""Which samples a method should do well on, when it may be given validation Signals."""

from dataclasses import replace

import torch

from lcmat.types import Signals


def held_out(signals: Signals) -> Signals:
    """The validation samples of the classes that the group has, else the group itself.

    The group itself serves when there are no validation Signals, and also when they have no sample of these classes:
    gradients of other classes would be no target for it. With real-valued labels all validation samples count.

    Raises:
        ValueError: when the validation Signals lack a part, or are of another model.

    Example:
        >>> import torch
        >>> validation = Signals(features=torch.eye(2), logits=-torch.eye(2), labels=torch.tensor([0, 1]))
        >>> ones = torch.ones(3, 2)
        >>> group = Signals(features=ones, logits=ones, labels=torch.tensor([1, 1, 1]), validation=validation)
        >>> held_out(group).labels.tolist()
        [1]
    """
    validation = signals.validation
    if validation is None:
        return signals
    for name in ("features", "logits", "labels"):
        if getattr(validation, name) is None:
            raise ValueError(f"expected validation Signals with features, logits and labels, got none of the {name}")
    for name in ("features", "logits"):
        found, expected = validation.need(name).shape[1], signals.need(name).shape[1]
        if found != expected:
            raise ValueError(
                f"expected validation {name} of {expected} columns, as the training {name} have, got {found}; "
                "extract both from the same model"
            )
    for name in ("bias", "regression"):
        if getattr(validation, name) != getattr(signals, name):
            raise ValueError(f"the validation and the training Signals differ in {name}; extract both from one model")
    # A model's outputs may have been kept in another precision, or on another device.
    features = validation.need("features").to(signals.need("features").dtype)
    validation = replace(validation, features=features).to(signals.device)
    if signals.regression:
        return validation
    labels = validation.need("labels")
    members = torch.isin(labels, signals.need("labels").unique()).nonzero().flatten()
    return validation.take(members) if len(members) else signals
