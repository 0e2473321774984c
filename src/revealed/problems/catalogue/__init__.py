"""Ready-made problems: paths, knapsacks, matchings, decision processes, schedules, portfolios.

`revealed.problems` has the names that users call.
"""
