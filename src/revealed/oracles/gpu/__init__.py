"""Oracles on the device: decisions for costs that are on a GPU, and stay there."""

from .paths import Launch, solve_paths_on_device

__all__ = ["Launch", "solve_paths_on_device"]
