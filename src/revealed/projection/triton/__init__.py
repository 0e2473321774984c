"""Projection on the device: Triton kernels for narrow bands, `torch_dense` for the rest."""

from .launch import Launch
from .run import project_on_device
from .sets import DeviceSets, on_device

__all__ = ["DeviceSets", "Launch", "on_device", "project_on_device"]
