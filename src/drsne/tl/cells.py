"""DR-SNE of the cells of an AnnData object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drsne import checks
from drsne.estimators.drsne import DRSNE
from drsne.tl.fitting import MIN_CELLS, check_cells, fitted, write_map

if TYPE_CHECKING:
    from anndata import AnnData


def drsne(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    density_weight: float | str = 1.0,
    perplexity: float = 30.0,
    metric: Any = None,
    neighbors_key: str | bool | None = None,
    key_added: str | None = None,
    copy: bool = False,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    **parameters: Any,
) -> AnnData | None:
    """Embed the cells of an AnnData object with DR-SNE.

    Use :func:`fit` instead to obtain the fitted model as well, which places new cells and can be saved. The model is
    not stored in ``adata``, because an h5ad file cannot hold it.

    Parameters
    ----------
    adata : AnnData
        The cells. A backed object works if the representation is in memory, as arrays in ``obsm`` usually are.
    use_rep : str or None, default=None
        The representation to embed: "X", or a key of ``obsm``. If None, it is chosen as in scanpy: ``X`` if it has at
        most 50 variables, and otherwise ``obsm["X_pca"]``. If there is no such array, principal components are
        computed from ``X``, or from its highly variable genes if ``var["highly_variable"]`` marks them, with a warning.
        If ``neighbors_key`` is a string, the default is the representation of that graph.
    n_pcs : int or None, default=None
        The number of columns of the array in ``obsm`` to use. If None, all columns are used. With ``use_rep="X"``, the
        number of principal components to compute from ``X``; if None, all variables are used. The components are then
        part of the model, so that new cells can be placed by their genes.
    density_weight : float or "auto", default=1.0
        The weight of the density term. 0 gives plain t-SNE, and "auto" chooses a weight, as in :class:`drsne.DRSNE`.
    perplexity : float, default=30.0
        The effective number of neighbours of a cell.
    metric : str, callable or None, default=None
        The metric of the distances between cells, as in :class:`drsne.DRSNE`. None means "euclidean" or, if
        ``neighbors_key`` is a string, the metric of that graph.
    neighbors_key : str, False or None, default=None
        The key in ``uns`` of a neighbour graph of ``sc.pp.neighbors``. None means "neighbors", if there is such a
        graph. A graph is reused if it holds the distances of the representation and has enough neighbours: three times
        the perplexity, and at least ``density_neighbors``. Otherwise, neighbours are computed from the representation,
        and a warning states the reason. If False, graphs are ignored.
    key_added : str or None, default=None
        If None, results are stored under the names below. Otherwise, they are stored as ``obsm[key_added]``,
        ``uns[key_added]``, ``obs[f"{key_added}_concentration"]`` and ``obs[f"{key_added}_concentration_map"]``.
    copy : bool, default=False
        Whether to return a copy with the results, and leave ``adata`` unchanged.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the random numbers in the initial map.
    n_jobs : int or None, default=None
        Number of threads. None means 1, and -1 means all cores.
    verbose : int, default=0
        If 1, a progress bar is shown. If 2, every step is also logged.
    **parameters
        Further parameters of :class:`drsne.DRSNE`, such as ``n_components``, ``density_neighbors`` or ``max_iter``.

    Returns
    -------
    AnnData or None
        The copy if ``copy`` is True, and otherwise None. These fields are set:

        ``obsm["X_drsne"]`` : the map, an array of shape (n_obs, n_components).

        ``obs["drsne_concentration"]`` : the logarithm of the relative concentration of each cell in the data. 0 is
        average, positive values are denser, and log 2 = 0.69 is twice the average.

        ``obs["drsne_concentration_map"]`` : the same for the map.

        ``uns["drsne"]`` : a dict with the parameters (``params``), the weight of the density term (``density_weight``),
        the final losses (``kl_divergence`` and ``concentration_loss``), the power by which the map enlarges ratios of
        concentrations (``contrast``) and the number of iterations (``n_iter``).

    See Also
    --------
    fit : Embed the cells and return the fitted model.
    transform : Place new cells in a map.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import drsne
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(np.vstack([rng.normal(0, 0.1, (50, 5)), rng.normal(3, 1.0, (50, 5))]))
    >>> drsne.tl.drsne(adata, perplexity=10, density_neighbors=10)
    >>> adata.obsm["X_drsne"].shape
    (100, 2)
    >>> dense, sparse = adata.obs["drsne_concentration"].head(50), adata.obs["drsne_concentration"].tail(50)
    >>> bool(dense.mean() > sparse.mean())
    True
    """
    copy = checks.flag("copy", copy)
    check_cells(adata, MIN_CELLS, copy=copy)
    named = {"density_weight": density_weight, "perplexity": perplexity, "metric": metric}
    named |= {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose, **parameters}
    found = fitted(
        adata,
        named,
        use_rep=use_rep,
        n_pcs=n_pcs,
        neighbors_key=neighbors_key,
        key_added=key_added,
        for_new_cells=False,
    )
    target = adata.copy() if copy else adata
    write_map(target, *found, key_added)
    return target if copy else None


def fit(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    density_weight: float | str = 1.0,
    perplexity: float = 30.0,
    metric: Any = None,
    neighbors_key: str | bool | None = None,
    key_added: str | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    **parameters: Any,
) -> DRSNE:
    """Embed the cells of an AnnData object with DR-SNE, and return the fitted model.

    This sets the same fields of ``adata`` as :func:`drsne.tl.drsne`, and has the same parameters except ``copy``. The
    model places new cells (:func:`transform`) and can be saved (``model.save``). It keeps its own copy of the
    representation. Its attribute ``representation_`` is a dict that says which columns it was fitted to.

    Parameters
    ----------
    adata : AnnData
        The cells.
    use_rep, n_pcs, density_weight, perplexity, metric, neighbors_key, key_added, random_state, n_jobs, verbose
        As in :func:`drsne.tl.drsne`.
    **parameters
        Further parameters of :class:`drsne.DRSNE`.

    Returns
    -------
    DRSNE
        The fitted model.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import drsne
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(80, 5)))
    >>> old, new = cells[:60].copy(), cells[60:].copy()
    >>> model = drsne.tl.fit(old, perplexity=10, density_neighbors=10, max_iter=100)
    >>> drsne.tl.transform(new, model)
    >>> new.obsm["X_drsne"].shape
    (20, 2)
    """
    check_cells(adata, MIN_CELLS)
    named = {"density_weight": density_weight, "perplexity": perplexity, "metric": metric}
    named |= {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose, **parameters}
    found = fitted(
        adata,
        named,
        use_rep=use_rep,
        n_pcs=n_pcs,
        neighbors_key=neighbors_key,
        key_added=key_added,
        for_new_cells=True,
    )
    found.model.representation_ = found.representation.record()
    write_map(adata, *found, key_added)
    return found.model
