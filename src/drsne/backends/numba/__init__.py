"""The backend that fits use: compiled loops over rows, on threads, with results that do not depend on their number.

``threads`` runs a kernel over fixed blocks of rows, ``kernels`` has the compiled functions, and ``backend`` puts them
behind the methods of :class:`drsne.backends.Backend`. ``ordering``, ``cells`` and ``map_neighbors`` are what several of
these share.
"""
