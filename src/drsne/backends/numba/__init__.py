"""The backend that fits use: compiled loops over rows, run by threads.

The results do not depend on the number of threads. ``threads`` runs a kernel over fixed blocks of rows, ``kernels`` has
the compiled functions, and ``backend`` calls them from the methods of :class:`drsne.backends.Backend`. ``ordering``,
``cells`` and ``map_neighbors`` are shared by several of these.
"""
