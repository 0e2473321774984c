"""The numbers that steer the projection, and the reason for each.

One method is written three times: for the CPU in numba (`cpu`), for a GPU in Triton (`triton`) and
for any device in plain torch (`torch_dense`, which takes the CPU's numbers throughout). All of them
read these. Rows have length 1 and costs are of order one, so the numbers have no units.
"""

# --- Newton's method -----------------------------------------------------------------------------

PENALTY = 1e4
"""Of the augmented Lagrangian that keeps a bounded row: each update of its multiplier gains about
this factor."""
SLOPE = 0.1
"""The line search stops when the slope has fallen to this share of its start."""
SOFT_SLOPE = 0.5
"""The same for soft steps, which need not be exact."""
TRIALS = 30
"""Most step lengths that a line search tries."""
MOVES = 4
"""Exact steps after which the multipliers of the bounds have been updated often enough to hold."""
EXACT = 1e-7
"""A full step within one piece that leaves more slope than this was not solved exactly."""
GIVEN_UP = 1e9
"""More cuts than there is patience for."""
SHORT = 1e-3
"""Moves shorter than this share of |q| are judged as if they were this long."""
OVERSHOOT = 5.0
"""A slope after a full step, in terms of the one before, beyond which something else is tried at
once. Where most entries have to change sides it is ten or more; with 1, easy problems give up
too."""
STILL = 0.01
"""Newton goes on until the residual is this share of the tolerance, where it can."""

QUICK_STEPS = 10
"""Newton steps before something else is tried; from a fresh start most batches need one or two."""
PATIENCE = 6
"""Cut steps after which it is tried sooner."""
SOFT_STEPS = 5
"""How many of them there are in a row."""
SOFTENING = 0.3
"""What is left of mu after a soft step; it starts at the root mean square of the residuals."""
RIDGE = 1e-11
"""Proximal term. The gradient lies in the Hessian's range, so it may be tiny."""

INTERIOR_STEPS = 80
STAGES = ((None, 10), (1e-6, 15), (1e-10, 40), (1e-14, 100))
"""For what is left: soft steps (None) or the interior point and its goal, then Newton steps."""

# --- the interior point --------------------------------------------------------------------------

START = 0.1
"""First distance of an entry from its bound, in mean |t|."""
INTERIOR_RIDGE = 1e-12
"""Proximal term."""
INSIDE = 0.995
"""Share of the way to the boundary that a step may go."""

# --- on a device ---------------------------------------------------------------------------------

DEVICE_QUICK_STEPS = 24
DEVICE_ALL_STEPS = 40
"""Most steps before the interior point, without and with soft steps among them."""
DEVICE_PATIENCE = 7
"""As on the CPU, but with more trust in Newton: here a step of the interior point costs twice as
much, and a small batch is done when its slowest instance is. Twice as many from a warm start, which
is nearer: on boards to be matched one in twenty would otherwise end a few steps too early."""
FAR = 0.25
"""Soft steps come first where a typical row of a warm start is off by more than this, in terms of
the residuals: 0.04 to 0.1 where these hardly change, 0.3 and more where they are as small as their
changes, late in training."""
FAIR = 0.1
"""Once a step was exact, or the start was a warm one, a residual of this share of the tolerance is
good enough."""
DEVICE_RIDGE = 1e-9
"""The CPU's is smaller: inverted blocks lose more digits to a nearly singular matrix than a
Cholesky factor does."""
DEVICE_RIDGE_32 = 1e-6
"""The same where the elimination is done in float32, whose rounding is about a tenth of it."""
DEVICE_INTERIOR_RIDGE = 1e-10
"""The same for the interior point."""

ROUNDS = 2
"""How often there may be soft steps in the first try."""
DEVICE_SOFT_STEPS = 4
DEVICE_SOFTENING = 0.2
"""As `SOFT_STEPS` and `SOFTENING`, in the same program as the steps around them."""
MILD = 1.5
"""A start whose rows are off by less than this, in terms of the residuals, needs fewer of them:"""
MILD_STEPS = 2
MILD_ROUGH = 0.2
"""and rounded off less, in terms of that root mean square."""
LOST = 1e12
"""Multipliers as large as this prove nothing: what they cancel to is rounding. A search that has
run away, along rows that all but repeat each other, ends at least within reach."""


def plan_stages(bounds: bool) -> tuple[float, tuple[tuple[float | None, int], ...]]:
    """The overshoot that is put up with, and the stages.

    Where rows have bounds, their penalties overshoot by themselves, and soft steps do not help as
    often as they do: on NETLIB problems 0.7 to 1.35 of the time that it takes without.
    """
    return (float("inf"), STAGES[1:]) if bounds else (OVERSHOOT, STAGES)
