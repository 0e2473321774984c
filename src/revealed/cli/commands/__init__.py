"""The commands for one's own data: one module each, with `add_arguments` and `run`."""
