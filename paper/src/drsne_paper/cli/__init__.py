"""The commands that this package adds to ``drsne``, through the entry points ``drsne.commands``."""
