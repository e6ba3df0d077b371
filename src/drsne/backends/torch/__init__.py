"""The backend of PyTorch, on a GPU or a CPU. Only its modules import PyTorch, and only fits that use it import them."""

from drsne.backends.protocol import Kind

KIND = Kind(
    "torch",
    numpy_arrays=False,
    tree_dimensions=2,
    large={1: "tree", 2: "tree"},
    crossover=({1: 2500, 2: 2500}, {1: 2500, 2: 2500}),
    slow_from=50_000,
    weighted_engines=True,
)
