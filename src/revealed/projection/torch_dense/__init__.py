"""The plain version of the device kernels: the same method in torch, dense, many instances in step.

newton      the entry, and Newton's method with its line search
interior    the interior point
instances   the state of a batch and its linear algebra
"""
