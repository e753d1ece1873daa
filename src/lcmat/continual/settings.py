"""How networks are trained along a stream."""

from dataclasses import dataclass

from lcmat.networks.build import parse as parse_net
from lcmat.training.settings import check_loop

PROTOCOLS = ("memory", "replay")


@dataclass(frozen=True)
class Settings:
    """How networks are trained.

    Attributes:
        protocol: 'memory' trains a fresh network on the memory alone at each step, as the paper does; 'replay' trains
            one network on, with what arrives and the memory in equal parts.
        net: the network that is judged.
        epochs: of each of its trainings.
        proxy: the network that a selector looks with under 'memory'.
        proxy_epochs: of its training on what arrives.
        batch_size: of all trainings.
        lr: learning rate of the judged network, falling along a cosine.
        augment: of its trainings, as `lcmat.train` takes it.
    """

    protocol: str = "memory"
    net: str = "convnet"
    epochs: int = 200
    proxy: str = ""
    proxy_epochs: int = 10
    batch_size: int = 128
    lr: float = 0.1
    augment: bool | str = True

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"expected a protocol of {' or '.join(PROTOCOLS)}, got {self.protocol!r}")
        if self.epochs < 1 or self.proxy_epochs < 1:
            raise ValueError(f"expected at least 1 epoch, got {self.epochs} and, for proxies, {self.proxy_epochs}")
        check_loop(epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, augment=self.augment)
        for net in filter(None, (self.net, self.proxy)):
            parse_net(net)
        if not self.proxy:
            object.__setattr__(self, "proxy", self.net)
