"""No projection is called solved that is wrong: hostile problems against exact arithmetic.

    python experiments/scripts/claims_projection.py              # 5,000 problems, all methods
    python experiments/scripts/claims_projection.py --no-exact   # floating point alone

Rows and columns have scales of 10^+-8, alone and mixed; entries differ by dust; rows repeat each
other; entries are free, fixed and at bounds; the margin is 0 or positive. The truth is found in
exact arithmetic by trying active sets (`tests/library/exact_reference.py`). Prints each
false claim, the share that is not solved by kind of scale, and exits with 1 if any claim is false.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/library"))

from exact_reference import SCALES, error_of, exact_projection, hostile_problem

from revealed.cli.commands.options import positive, whole
from revealed.projection import project

WRONG = 1e-6
"""A claim is false if the point is farther than this from the truth, in moves."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=positive, default=5000)
    parser.add_argument("--first", type=whole, default=0, help="number of the first problem")
    parser.add_argument("--no-exact", action="store_true", help="without exact arithmetic")
    args = parser.parse_args()
    if args.no_exact:
        sys.modules[project.__module__].exact_projection = lambda *_: None
    seen, failed, false = Counter(), Counter(), 0
    for seed in range(args.first, args.first + args.count):
        sets, cost = hostile_problem(seed)
        p = project(cost, sets)
        kind = SCALES[seed % len(SCALES)]
        seen[kind] += 1
        if not p.solved[0]:
            failed[kind] += 1
            continue
        truth = exact_projection(sets, 0, cost[0], p.point[0])
        error = error_of(p.point[0], truth, cost[0], sets.margins[0])
        if not error <= WRONG:
            false += 1
            print(f"problem {seed}: called solved, {error:.1e} moves from the truth")
    for kind in SCALES:
        print(f"scales {kind:8s}{seen[kind]:6d} problems, not solved {share(failed, seen, kind)}")
    total = sum(failed.values()) / max(sum(seen.values()), 1)
    print(f"{sum(seen.values())} problems: {false} false claims, {total:.1%} not solved")
    return int(false > 0)


def share(part: Counter, whole: Counter, kind: str) -> str:
    return f"{part[kind] / max(whole[kind], 1):.1%}"


if __name__ == "__main__":
    sys.exit(main())
