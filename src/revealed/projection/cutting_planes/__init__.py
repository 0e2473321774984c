"""Projection onto sets of whole decisions: an outer set of cuts, an inner set of the relaxation.

cone         the nearest point of a cone that a few cuts describe
separation   ask the oracle for decisions that a cost makes cheaper than the observed one
project      rounds of both, for a batch, and the bounds they leave
"""
