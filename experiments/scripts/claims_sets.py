"""No projection onto a set of parameters is called solved, or empty, that is not.

    python experiments/scripts/claims_sets.py                # 5,000 sets
    python experiments/scripts/claims_sets.py --first 70000 --method clarabel

Forms of costs, limits, soft sets and quadratic programs in units of 2^+-24; the truth comes from
Lemke's method in exact arithmetic (`tests/library/hostile_sets.py`). Prints each false claim, the
share not solved by kind and scale, and exits with 1 if any claim is false.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/library"))

from hostile_sets import KINDS, SCALES, hostile_set, is_false

from revealed import ProjectionStatus, project
from revealed.cli.commands.options import positive, whole

CLAIMS = (ProjectionStatus.SOLVED, ProjectionStatus.EMPTY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=positive, default=5000)
    parser.add_argument("--first", type=whole, default=0, help="number of the first set")
    parser.add_argument("--method", default="auto", help="auto, kernel or clarabel")
    args = parser.parse_args()
    seen, missed, false = Counter(), Counter(), 0
    start = time.perf_counter()
    for seed in range(args.first, args.first + args.count):
        case = hostile_set(seed)
        p = project(case.q[None], case.sets, method=args.method)
        status = ProjectionStatus(int(p.status[0]))
        seen[case.kind, case.scales] += 1
        wrong = is_false(case, status, p.point[0])
        false += bool(wrong)
        if wrong:
            print(f"set {seed} ({case.kind}, {case.scales}): {wrong}")
        missed[case.kind, case.scales] += status not in CLAIMS
    print("not answered    " + "".join(f"{scales:>10s}" for scales in SCALES))
    for kind in KINDS:
        shares = (missed[kind, s] / max(seen[kind, s], 1) for s in SCALES)
        print(f"{kind:16s}" + "".join(f"{share:10.1%}" for share in shares))
    total = sum(missed.values()) / max(sum(seen.values()), 1)
    print(
        f"{sum(seen.values()):,} sets in {time.perf_counter() - start:.0f} s: {false} false "
        f"claims, {total:.1%} not answered"
    )
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
