"""The paper's preprocessing of PBMC3k, which uses scanpy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper import checks
from drsne_paper.datasets._data import Data
from drsne_paper.datasets._registry import load
from drsne_paper.datasets.recipes.steps import PAPER_SEED

_EXTRA = "pip install './paper[pbmc]'"
_N_GENES = 2000


def pbmc(
    *,
    labels: str | None = None,
    n_components: int = 50,
    graph_neighbors: int = 15,
    graph_components: int | None = None,
    graph_method: str = "umap",
    data_home: Any = None,
) -> Data:
    """Return the principal components of PBMC3k, computed with scanpy: ``pip install './paper[pbmc]'``.

    Cells and genes are not filtered at first. The counts of each cell are scaled to a sum of 10,000 and transformed to
    log(1 + x). The 2000 most variable genes are selected, scaled and clipped at 10. Their 50 principal components
    (arpack) are not rescaled. The labels are clusters of the 15-neighbour graph at resolution 1.0 with seed 42.

    Origin: the PBMC loaders of the paper's code. They use Louvain in the main comparison, Leiden for anomalies, and
    other numbers of components and other graphs in the ablations. The number of clusters depends on the versions of the
    packages.

    Parameters
    ----------
    labels : {"louvain", "leiden"}, default=None
        The clusters to return as ``y``. If None, return no labels. Louvain clusters are computed with the package
        louvain if it is installed (``pip install './paper[louvain]'``), and otherwise with igraph, which finds nearly
        the same clusters. Leiden clusters are computed with igraph.
    n_components : int, default=50
        The number of principal components.
    graph_neighbors : int, default=15
        The number of neighbours in the graph that is clustered.
    graph_components : int, default=None
        The number of principal components used to build the graph. If None, use all of them.
    graph_method : {"umap", "gauss"}, default="umap"
        How scanpy weights the edges of the graph.
    data_home : path, default=None
        The folder of the data files, as for ``drsne_paper.datasets.load``.

    Returns
    -------
    Data
        The data set. ``X`` has shape (2700, n_components) and type float32. ``y`` contains integers, or is None.
    """
    count = checks.integer("n_components", n_components, at_least=1)
    if labels is not None:
        checks.choice("labels", labels, ("louvain", "leiden"), also=" or None")
        _package("leidenalg", f"labels={labels!r}")  # leidenalg depends on igraph
    scanpy = _package("scanpy", "The PBMC recipe")
    data = load("pbmc3k", data_home=data_home)
    cells = _components(scanpy, data.X, count)
    y, note = None, f"{count} principal components, computed with scanpy; y is None."
    if labels is not None:
        scanpy.pp.neighbors(
            cells,
            n_neighbors=checks.integer("graph_neighbors", graph_neighbors, at_least=2),
            n_pcs=graph_components,
            method=checks.choice("graph_method", graph_method, ("umap", "gauss")),
            random_state=PAPER_SEED,
        )
        y, package = _clusters(scanpy, cells, labels)
        by = " (from igraph)" if package == "igraph" else ""
        note = f"{count} principal components, computed with scanpy; y contains the {labels} clusters{by}."
    return Data(
        X=np.asarray(cells.obsm["X_pca"]),
        y=y,
        name="pbmc3k",
        description=f"PBMC3k, 2700 blood cells: {note}",
        source=data.source,
    )


def _components(scanpy: Any, counts: Any, n_components: int) -> Any:
    """Return an AnnData object with the most variable genes and their principal components."""
    from anndata import AnnData

    cells = AnnData(X=counts)
    scanpy.pp.normalize_total(cells, target_sum=1e4)
    scanpy.pp.log1p(cells)
    scanpy.pp.highly_variable_genes(cells, n_top_genes=_N_GENES)
    cells = cells[:, cells.var["highly_variable"]].copy()
    with warnings.catch_warnings():  # scanpy warns that centred data are dense, but this is intended
        warnings.filterwarnings("ignore", message="zero-centering a sparse", category=UserWarning)
        scanpy.pp.scale(cells, max_value=10)
    scanpy.tl.pca(cells, n_comps=n_components, svd_solver="arpack")
    return cells


def _clusters(scanpy: Any, cells: Any, labels: str) -> tuple[NDArray[np.int64], str]:
    """Return the clusters of the graph, and the name of the package that found them."""
    package = "igraph"
    if labels == "leiden":
        # The clusters found by leidenalg depend on its version. Those found by igraph do not, and they include the two
        # smallest clusters of the authors.
        scanpy.tl.leiden(
            cells, resolution=1.0, random_state=PAPER_SEED, flavor="igraph", n_iterations=2, directed=False
        )
    elif find_spec("louvain") is not None:
        scanpy.tl.louvain(cells, resolution=1.0, random_state=PAPER_SEED)
        package = "louvain"
    else:
        with igraph_seed(PAPER_SEED):  # scanpy does not pass the seed on to igraph
            scanpy.tl.louvain(cells, flavor="igraph")  # igraph supports only the resolution 1.0
    return cells.obs[labels].to_numpy().astype(np.int64), package


@contextmanager
def igraph_seed(seed: int) -> Iterator[None]:
    """Make igraph use a random generator with this seed inside the block."""
    import random

    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)


def _package(module: str, purpose: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: {_EXTRA}.") from error
