"""What the methods of `revealed bench integer` are called."""

SPO, PFYL, LOOP, SOLVER = "SPO+ (true costs)", "PFYL", "ours, loop", "ours, to the minimum"
CAVE, TIGHT = "CaVE+ (rows only)", "ours, tightened rows, no oracle"
LAZY = "ours, oracle asked in every 4th step"
