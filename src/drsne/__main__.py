"""``python -m drsne``: the command line."""

from drsne.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
