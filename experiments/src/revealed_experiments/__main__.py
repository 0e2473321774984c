"""`python -m revealed_experiments bench ...`: the commands without an installation, from source."""

from revealed.cli import main

from .cli import GROUPS

if __name__ == "__main__":
    raise SystemExit(main(groups=GROUPS))
