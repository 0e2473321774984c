"""What the data can teach, said before anything is fitted: findings, each with rows and advice."""

from .examine import CHECKS, examine
from .finding import Case, Finding, Severity

__all__ = ["CHECKS", "Case", "Finding", "Severity", "examine"]
