"""Fitting models of costs to decisions: L-BFGS, POCS, first-order methods, and an estimator.

The names that need torch or scikit-learn are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._common.optional import require
from .certificate import Certificate as Certificate
from .evaluation import DistanceLoss as DistanceLoss
from .feature_models import QuadraticModel as QuadraticModel
from .feature_models import SharedModel as SharedModel
from .history import History as History
from .history import StopReason as StopReason
from .intervals import CoefficientIntervals as CoefficientIntervals
from .intervals import coefficient_intervals as coefficient_intervals
from .kernel_model import KernelModel as KernelModel
from .lbfgs import lbfgs as lbfgs
from .limits.learning import learn_limits as learn_limits
from .limits.model import LimitCertificate as LimitCertificate
from .limits.model import LimitIntervals as LimitIntervals
from .limits.model import LimitModel as LimitModel
from .loss_names import Huber as Huber
from .loss_names import Welsch as Welsch
from .models import CostModel as CostModel
from .models import LinearModel as LinearModel
from .pocs import pocs as pocs
from .solvers import LBFGS as LBFGS
from .solvers import POCS as POCS
from .solvers import SGD as SGD
from .solvers import Adagrad as Adagrad
from .solvers import Adam as Adam
from .solvers import Armijo as Armijo
from .solvers import Boosting as Boosting
from .solvers import Preconditioned as Preconditioned
from .solvers import Solver as Solver

if TYPE_CHECKING:
    from .conformal import ConformalDecisions as ConformalDecisions
    from .cross_validation import InverseRegressorCV as InverseRegressorCV
    from .estimator import InverseRegressor as InverseRegressor
    from .loading import load as load
    from .partial import PartialDecisions as PartialDecisions
    from .partitioned.batches import PartitionBatches as PartitionBatches
    from .partitioned.run import Run as Run
    from .scoring import predict_cost as predict_cost
    from .scoring import scorer as scorer
    from .torch_model import TorchModel as TorchModel
    from .training import TrainSettings as TrainSettings
    from .training import erm as erm

_LAZY = {
    "predict_cost": "scoring",
    "scorer": "scoring",
    "ConformalDecisions": "conformal",
    "TorchModel": "torch_model",
    "TrainSettings": "training",
    "erm": "training",
    "load": "loading",
    "PartialDecisions": "partial",
    "PartitionBatches": "partitioned.batches",
    "Run": "partitioned.run",
    "InverseRegressor": "estimator",
    "InverseRegressorCV": "cross_validation",
}

_OF_TORCH = ("TorchModel", "TrainSettings", "erm")
"""Those of them that train torch modules."""

__all__ = [  # noqa: RUF022  (in reading order)
    "LinearModel",
    "SharedModel",
    "QuadraticModel",
    "KernelModel",
    "TorchModel",
    "CostModel",
    "LBFGS",
    "POCS",
    "Boosting",
    "Armijo",
    "Preconditioned",
    "SGD",
    "Adam",
    "Adagrad",
    "Solver",
    "Huber",
    "Welsch",
    "lbfgs",
    "pocs",
    "erm",
    "TrainSettings",
    "DistanceLoss",
    "History",
    "StopReason",
    "Certificate",
    "PartialDecisions",
    "learn_limits",
    "LimitModel",
    "LimitIntervals",
    "LimitCertificate",
    "coefficient_intervals",
    "CoefficientIntervals",
    "InverseRegressor",
    "InverseRegressorCV",
    "PartitionBatches",
    "Run",
    "ConformalDecisions",
    "scorer",
    "predict_cost",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _OF_TORCH:
        require("torch", f"`revealed.fit.{name}`", "torch")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
