"""Portfolios from real prices."""
