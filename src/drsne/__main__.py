"""``python -m drsne``: the command line."""

from drsne.cli import main

raise SystemExit(main())
