"""The backend that fits use: compiled loops over rows, run by threads.

The results do not depend on the number of threads. ``threads`` runs a kernel over fixed blocks of rows, ``kernels`` has
the compiled functions, and ``backend`` calls them from the methods of :class:`drsne.backends.Backend`.
"""

from drsne.backends.protocol import Kind

# At these sizes, the tree takes about as long as the sum over all pairs (benchmarks/engines.py), and it takes seconds
# to compile in a first fit.
KIND = Kind(
    "numba",
    tree_dimensions=3,
    large={1: "fft", 2: "fft", 3: "tree"},
    crossover=({1: 2000, 2: 2500, 3: 2500}, {1: 1500, 2: 2500, 3: 1500}),
)
