"""A fitted model on disk: a folder of safetensors and JSON that holds data and no code."""

from ...io.folder import check_target
from .model import FittedModel, Samples, load_model, save_model

__all__ = ["FittedModel", "Samples", "check_target", "load_model", "save_model"]
