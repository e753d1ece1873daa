"""Training and plain inference: one loop for CPU and GPU."""

from lcmat.training.inference import accuracy, predict
from lcmat.training.log import TrainingLog, log_of
from lcmat.training.loop import train
from lcmat.training.settings import training_key

__all__ = ["TrainingLog", "accuracy", "log_of", "predict", "train", "training_key"]
