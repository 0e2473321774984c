"""The experiments: what was timed or counted, against whom, on which machine, written down.

A folder for each, whose `command` is what `revealed bench NAME` runs; `sweeps` is for those that
consist of many runs. `record`, `tables` and `published` serve all.
"""
