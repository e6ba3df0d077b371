"""The placement of new cells in the map of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drsne import checks
from drsne.estimators.drsne import DRSNE
from drsne.placement.lazy import described_lazily, is_lazy
from drsne.tl.fitting import check_cells, check_key, write
from drsne.tl.representation import place_of, same_columns

if TYPE_CHECKING:
    from anndata import AnnData


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
