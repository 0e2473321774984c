"""Projection on the device: Triton kernels for narrow bands, `torch_dense` for the rest."""

from ...optimality.protocol import PROJECTORS
from .launch import Launch
from .run import project_on_device, project_tensors
from .sets import DeviceSets, on_device

PROJECTORS.register(DeviceSets, project_tensors)

__all__ = ["DeviceSets", "Launch", "on_device", "project_on_device"]
