"""DR-SNE for AnnData objects, in the manner of scanpy's tools.

The functions read a representation and, if there is one, a neighbour graph from an AnnData object, and they write their
results into it. They need anndata (``pip install 'drsne[anndata]'``), which is imported when a function is called. They
do not need scanpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drsne import checks
from drsne.estimators.drsne import DRSNE
from drsne.placement.lazy import described_lazily, is_lazy
from drsne.tl.fitting import MIN_CELLS, check_cells, check_key, fitted, write, write_map
from drsne.tl.representation import place_of, same_columns

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["drsne", "fit", "transform"]


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
    parameters |= {"density_weight": density_weight, "perplexity": perplexity, "metric": metric}
    parameters |= {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    found = fitted(adata, parameters, use_rep, n_pcs, neighbors_key, key_added, for_new_cells=False)
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
    parameters |= {"density_weight": density_weight, "perplexity": perplexity, "metric": metric}
    parameters |= {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    found = fitted(adata, parameters, use_rep, n_pcs, neighbors_key, key_added, for_new_cells=True)
    found.model.representation_ = found.representation.record()
    write_map(adata, *found, key_added)
    return found.model


def transform(
    adata: AnnData, model: DRSNE, *, use_rep: str | None = None, key_added: str | None = None, copy: bool = False
) -> AnnData | None:
    """Place new cells in the map of a fitted model, which does not change.

    The new cells need the representation that the model was fitted to. For ``X``, variables are matched by name. For
    ``obsm["X_pca"]``, the new cells must be projected onto the components of the old ones, for example with
    ``sc.tl.ingest``. The components of a separate PCA do not fit.

    Parameters
    ----------
    adata : AnnData
        The new cells. If the representation is a Dask array, it is read block by block.
    model : DRSNE
        A model of :func:`fit`, or one that was loaded with :func:`drsne.load`.
    use_rep : str or None, default=None
        The representation: "X", or a key of ``obsm``. If None, it is the one that the model was fitted to. A model that
        was fitted without :func:`fit` does not know it.
    key_added : str or None, default=None
        If None, results are stored under the names below. Otherwise, they are stored as ``obsm[key_added]``,
        ``uns[key_added]``, ``obs[f"{key_added}_concentration"]`` and ``obs[f"{key_added}_novelty"]``.
    copy : bool, default=False
        Whether to return a copy with the results, and leave ``adata`` unchanged.

    Returns
    -------
    AnnData or None
        The copy if ``copy`` is True, and otherwise None. These fields are set:

        ``obsm["X_drsne"]`` : the positions of the cells in the map.

        ``obs["drsne_concentration"]`` : the logarithm of the relative concentration of each cell among the old cells.

        ``obs["drsne_novelty"]`` : the distance to the nearest old cell, in units of the radius of that cell. Values up
        to about 1.5 are typical of the old cells. From 1.5 to 3, treat the position with caution. Above 3, a cell is
        unlike all of them, so do not interpret its position.

        ``uns["drsne"]`` : a dict with the parameters (``params``).

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import drsne
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(80, 5)))
    >>> model = drsne.tl.fit(cells[:60].copy(), perplexity=10, density_neighbors=10, max_iter=100)
    >>> new = drsne.tl.transform(cells[60:], model, copy=True)
    >>> list(new.obs.columns)
    ['drsne_concentration', 'drsne_novelty']
    """
    copy = checks.flag("copy", copy)
    check_cells(adata, 1, copy=copy)
    check_key(key_added)
    record, use_rep = _record_of(model, use_rep)
    X = same_columns(adata, use_rep, record)
    found = described_lazily(model, X) if is_lazy(X) else model._described(X)
    target = adata.copy() if copy else adata
    write(
        target,
        key_added,
        found.places,
        {"concentration": found.concentration, "novelty": found.novelty},
        {"params": {"use_rep": use_rep, "n_columns": int(X.shape[1])}},
    )
    return target if copy else None


def _record_of(model: Any, use_rep: str | None) -> tuple[dict[str, Any], str]:
    """Return which columns a model was fitted to, and the representation to use, or raise an error."""
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, DRSNE):
        raise TypeError(
            f"model must be a DRSNE; got {type(model).__name__}. Pass the result of "
            "drsne.tl.fit(adata) or of drsne.load."
        )
    check_is_fitted(model, "embedding_")
    record = dict(getattr(model, "representation_", {}))
    reference = getattr(model, "_reference", None)
    if record and reference is not None and reference.training.given:
        raise ValueError(
            "model cannot place new cells, because it was fitted to a graph in which the neighbours of a cell are not "
            "the nearest ones, such as a graph that balances batches. Fit it again with neighbors_key=False."
        )
    if not record:
        if use_rep is None:
            raise ValueError(
                "use_rep must be given for a model that was not fitted with drsne.tl.fit, because it does not know "
                "its representation; got None. Pass 'X' or a key of adata.obsm."
            )
        return {"n_columns": int(model.n_features_in_)}, use_rep
    if use_rep is not None and use_rep != record["use_rep"]:
        raise ValueError(
            f"use_rep must be {record['use_rep']!r}, to which the model was fitted; got {use_rep!r}. Store the same "
            f"representation of the new cells as {place_of(record['use_rep'])}, or fit another model."
        )
    return record, str(record["use_rep"])
