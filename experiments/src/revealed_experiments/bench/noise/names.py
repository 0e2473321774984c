"""What the methods of `revealed bench noise` are called."""

OURS, PLAIN, CHOSEN = "ours", "ours, not smoothed", "ours, model chosen"
PFYL, LONG = "PFYL", "PFYL, longer"
SPO, REGRESSION = "SPO+ (true costs)", "least squares (true costs)"
FLOOR = "mean cost known"
QUADRATIC_PFYL, QUADRATIC_SPO = "PFYL, quadratic", "SPO+, quadratic (true costs)"
POCS, ARMIJO = "POCS, 150 steps", "Armijo, 150 steps"
TUNED_PFYL, TUNED_SPO = "PFYL, step chosen", "SPO+, step chosen (true costs)"
