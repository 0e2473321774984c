"""What others train on, each under the signature of `ProjectionLoss`, one file for each.

Helpers: `basis` and `device_basis` (simplex bases), `cone` (a point inside the cone of costs),
`interior` (smoothed linear programs), `standard_form` (constraints as tensors).
"""
