"""Tables of contexts and decisions on disk: CSV, Parquet and npz in, checked columns out."""

from .decisions import DecisionTable, read_decisions
from .features import Feature, FeatureMap, learn_features
from .files import open_table
from .pairing import Pairing, pair_rows
from .table import Table, TableFile
from .write import check_ending, write_table

__all__ = [
    "DecisionTable",
    "Feature",
    "FeatureMap",
    "Pairing",
    "Table",
    "TableFile",
    "check_ending",
    "learn_features",
    "open_table",
    "pair_rows",
    "read_decisions",
    "write_table",
]
