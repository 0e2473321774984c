"""A fitted model on disk: a folder of safetensors and JSON that holds data and no code."""

from .model import FittedModel, Samples, load_model, save_model

__all__ = ["FittedModel", "Samples", "load_model", "save_model"]
