"""Networks from pictures to costs: ResNet-18 and smaller ones, how they learn, how they do."""

from .averaging import Averaged as Averaged
from .heads import VertexToEdge as VertexToEdge
from .inputs import DeviceSplit as DeviceSplit
from .inputs import as_contexts as as_contexts
from .judging import judge as judge
from .judging import predict as predict
from .models import MODELS as MODELS
from .models import ImageModel as ImageModel
from .models import build_model as build_model
from .resnet import ResNet18 as ResNet18
from .training import TrainResult as TrainResult
from .training import TrainSettings as TrainSettings
from .training import train as train
from .views import View as View
from .views import sets_in as sets_in
from .views import views_of as views_of

__all__ = [
    "MODELS",
    "Averaged",
    "DeviceSplit",
    "ImageModel",
    "ResNet18",
    "TrainResult",
    "TrainSettings",
    "VertexToEdge",
    "View",
    "as_contexts",
    "build_model",
    "judge",
    "predict",
    "sets_in",
    "train",
    "views_of",
]
