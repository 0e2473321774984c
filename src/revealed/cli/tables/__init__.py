"""Tables of contexts and decisions on disk: CSV, Parquet and npz in, checked columns out."""

from .decisions import DecisionTable, read_decisions
from .features import Feature, FeatureMap
from .files import check_ending, open_table, write_table
from .gaps import Bad, Skipped
from .learning import IMPUTE, learn_contexts, learn_features
from .pairing import Pairing, pair_rows
from .table import Table, TableFile

__all__ = [
    "IMPUTE",
    "Bad",
    "DecisionTable",
    "Feature",
    "FeatureMap",
    "Pairing",
    "Skipped",
    "Table",
    "TableFile",
    "check_ending",
    "learn_contexts",
    "learn_features",
    "open_table",
    "pair_rows",
    "read_decisions",
    "write_table",
]
