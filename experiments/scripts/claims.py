"""How many claims about hostile programs are false (none may be), and how many are not made.

    python experiments/scripts/claims.py                  # 5,000 programs
    python experiments/scripts/claims.py --count 20000 --first 7

Half are linear, half quadratic (`tests/library/hostile_programs.py` makes them, with the truth
about each). The exit code is 1 if a claim is false.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from revealed.cli.commands.options import positive, whole

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/library"))

from hostile_programs import claimed, hostile, judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=positive, default=5000, help="how many programs")
    parser.add_argument("--first", type=whole, default=0, help="seed of the first")
    args = parser.parse_args()
    table: Counter[tuple[str, str, str]] = Counter()
    false, slowest, start = [], (0.0, 0), time.perf_counter()
    for k in range(args.count):
        seed, curved = args.first + k // 2, bool(k % 2)
        program, before = hostile(seed, curved), time.perf_counter()
        status, x, violation = claimed(program)
        slowest = max(slowest, (time.perf_counter() - before, seed))
        kind = "quadratic" if program.curved else "linear"
        table[kind, program.truth, status] += 1
        if judged(program, status, x, violation):
            false.append((seed, curved, program.truth, status))
    print(f"{'kind':<10} {'truth':<11} {'claimed':<11} programs")
    for (kind, truth, status), count in sorted(table.items()):
        print(f"{kind:<10} {truth:<11} {status:<11} {count:>8,}")
    failed = sum(n for (_, _, status), n in table.items() if status in ("FAILED", "LIMIT"))
    for seed, curved, truth, status in false[:20]:
        print(f"false: hostile({seed}, {curved}) is {truth}, claimed {status}")
    print(
        f"{args.count:,} programs in {time.perf_counter() - start:.0f} s, the slowest in "
        f"{slowest[0]:.2f} s (seed {slowest[1]}): {len(false)} false claims, "
        f"{failed} not answered ({failed / args.count:.2%})"
    )
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
