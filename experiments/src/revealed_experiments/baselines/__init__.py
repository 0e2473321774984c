"""Estimators of the paper's section 2 that are no loss to train on: each solves one program.

`robust` is the distributionally robust inverse problem of Mohajerin Esfahani et al., `circumcenter`
the offline estimator of Besbes, Fonseca and Lobel. Both are for small problems.
"""

from .circumcenter import Center as Center
from .circumcenter import circumcenter as circumcenter
from .circumcenter import circumcenter_costs as circumcenter_costs
from .robust import RobustFit as RobustFit
from .robust import robust_inverse as robust_inverse
from .robust import worst_case as worst_case
