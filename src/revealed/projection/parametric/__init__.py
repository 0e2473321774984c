"""Parameters instead of plain costs: cost forms, curved objectives, soft sets, limits and cones.

dispatch               which of the ways below serves
conditions, limits     what parameters must obey to explain a decision
alternating            the kernel between limits
augmented_lagrangian   conditions as penalties that are moved until they hold
conic                  anything else, by Clarabel, one instance at a time
"""
