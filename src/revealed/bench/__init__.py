"""The experiments: what was timed or counted, against whom, on which machine, written down."""
