"""`python -m revealed` is the `revealed` command."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
