"""Networks from pictures to costs: ResNet-18 and smaller ones, with heads for edges and cells."""

from .heads import VertexToEdge as VertexToEdge
from .inputs import DeviceSplit as DeviceSplit
from .inputs import as_contexts as as_contexts
from .models import MODELS as MODELS
from .models import ImageModel as ImageModel
from .models import build_model as build_model
from .resnet import ResNet18 as ResNet18

__all__ = [
    "MODELS",
    "DeviceSplit",
    "ImageModel",
    "ResNet18",
    "VertexToEdge",
    "as_contexts",
    "build_model",
]
