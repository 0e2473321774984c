"""`revealed data ...`: write a data set of pictures to disk, and say what was written.

Each command is a module with `add_arguments` and `run`; `_writing` is what they share.
"""
