"""What others train on, each under the signature of `ProjectionLoss`, one file for each.

Helpers: `basis` and `device_basis` (simplex bases), `cone` (a point inside the cone of costs),
`interior` and `standard_form` (smoothed linear programs), `dense` (constraints as tensors).
"""
