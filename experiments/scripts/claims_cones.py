"""No projection onto a set with curved cones is called solved, or empty, that is not.

    python experiments/scripts/claims_cones.py                # 2,000 sets
    python experiments/scripts/claims_cones.py --first 70000

Decisions at the apex of second-order and semidefinite cones, and semidefinite curvatures, with the
truth known by construction (`tests/library/hostile_cones.py`). Prints each false claim, the share
not solved by kind and twist, and exits with 1 if any claim is false.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from revealed.cli.commands.options import positive, whole

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/library"))

from hostile_cones import KINDS, TWISTS, hostile_cone, is_false

from revealed import ProjectionStatus, project


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=positive, default=2000)
    parser.add_argument("--first", type=whole, default=0, help="number of the first set")
    args = parser.parse_args()
    seen, missed, false = Counter(), Counter(), 0
    start = time.perf_counter()
    for seed in range(args.first, args.first + args.count):
        case = hostile_cone(seed)
        p = project(case.q[None], case.sets, threads=1)
        status = ProjectionStatus(int(p.status[0]))
        seen[case.kind, case.twist] += 1
        wrong = is_false(case, status, p.point[0])
        false += bool(wrong)
        if wrong:
            print(f"set {seed} ({case.kind}, {case.twist}): {wrong}")
        missed[case.kind, case.twist] += status != ProjectionStatus.SOLVED
    print("not solved      " + "".join(f"{twist:>10s}" for twist in TWISTS))
    for kind in KINDS:
        shares = (missed[kind, s] / max(seen[kind, s], 1) for s in TWISTS)
        print(f"{kind:16s}" + "".join(f"{share:10.1%}" for share in shares))
    total = sum(missed.values()) / max(sum(seen.values()), 1)
    print(
        f"{sum(seen.values()):,} sets in {time.perf_counter() - start:.0f} s: {false} false "
        f"claims, {total:.1%} not solved"
    )
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
