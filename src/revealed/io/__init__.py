"""Models on disk: a folder of safetensors and JSON that holds data and no code.

`folder` reads and writes such folders and the values that JSON holds; `problems` turns problems and
cost forms into tensors and facts, and back. The estimator (`InverseRegressor.save`,
`revealed.load`) and the command line share them.
"""

from .folder import Facts as Facts
from .folder import check_target as check_target
from .folder import read_folder as read_folder
from .folder import tensor as tensor
from .folder import write_folder as write_folder
