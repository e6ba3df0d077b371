"""Maps of data that are larger than memory: landmarks are fitted, and all other rows are placed in their map.

:func:`fit` reads Parquet files or Dask arrays in blocks. It runs in one process, or on the workers of a Dask cluster,
and writes the same bytes in both cases. Every stage keeps its results in a work folder, so a run that was interrupted
continues where it stopped. ``stages`` runs the stages, which are in ``landmarks``, ``concentration`` and ``placing``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from drsne import checks
from drsne.distributed import placing
from drsne.distributed.cluster import EXTRA, connected
from drsne.distributed.sources import Part, array_parts, is_dask_array, parquet_files, parquet_parts
from drsne.distributed.stages import Run, run_all
from drsne.distributed.work import INPUT, MANIFEST, SCORES, Work
from drsne.estimators.drsne import DRSNE

__all__ = ["Fitted", "fit"]

_CHANGE_NOTHING = ("n_jobs", "verbose", "callbacks", "keep_affinities")  # parameters that no result depends on


@dataclass(frozen=True)
class Fitted:
    """The result of :func:`drsne.distributed.fit`.

    Attributes
    ----------
    output : Path
        The folder with one Parquet file for each partition.
    model_file : Path
        The model of the landmarks. Load it with :func:`drsne.load` to place further rows.
    scores : dict
        The number of rows and of landmarks, the scores of the map on a sample, and the accuracy of the concentrations.
        Scores that are not defined, for example because all rows are equal, are None.
    seconds : dict
        The time of every stage in this call. A stage that was finished before takes almost no time.
    """

    output: Path
    model_file: Path
    scores: dict[str, Any]
    seconds: dict[str, float]


def fit(
    source: Any,
    output: str | os.PathLike[str],
    *,
    model: DRSNE | None = None,
    columns: Sequence[str] | None = None,
    n_landmarks: int = 20_000,
    coverage: float = 2.0,
    n_checked: int = 1_000,
    n_scored: int = 5_000,
    random_state: int = 0,
    client: Any = None,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> Fitted:
    """Make a map of data that are larger than memory, and write the places of all rows to Parquet files.

    The pipeline fits a map of landmarks and places all other rows in it. Its stages are: statistics and a uniform
    sample of the rows; landmarks, with more of them where the sample has gaps; the exact concentration of the landmarks
    in the whole data; the map of the landmarks, weighted by the numbers of rows for which they stand; the places of all
    rows, which are written in the order and in the partitions of the data; and scores on the sample. Every stage keeps
    its results in the folder ``<output>.work``. After an interruption, the same call continues where it stopped.

    Parameters
    ----------
    source : folder, list of files or Dask array
        A folder of Parquet files, a list of Parquet files, or a two-dimensional Dask array with known chunks. Files in
        subfolders are not read. The blocks of an array are written to the work folder once, because they are read
        several times. After an interruption, an array is recognised by its name, so make it in the same way again, or
        pass ``name`` to :func:`dask.array.from_array`.
    output : str or path
        The folder for the results. It gets one Parquet file for each partition, with the columns ``drsne1``, ``drsne2``
        and so on (the places), ``concentration_data`` and ``concentration_map`` (log relative concentrations in the
        whole data and in the map) and ``novelty`` (see :meth:`drsne.DRSNE.novelty`).
    model : DRSNE, default=None
        An estimator with the parameters of the landmarks' map. None stands for ``DRSNE()``. Its perplexity counts
        landmarks, and its ``density_neighbors`` counts landmarks in the map and rows in the whole data.
    columns : list of str, default=None
        The columns of Parquet files to use. If None, all columns are used except the index of a pandas or Dask data
        frame. They must then hold numbers, and all files must have the same columns.
    n_landmarks : int, default=20_000
        The number of landmarks. More landmarks show smaller groups and take more time and memory.
    coverage : float, default=2.0
        How strongly rows in regions of which the sample has few rows are preferred as landmarks. With 0, landmarks are
        a uniform sample and have equal weights.
    n_checked : int, default=1_000
        The number of rows whose concentration in the whole data is computed exactly besides that of the landmarks. One
        half makes the estimates for other rows unbiased, and the other half measures their accuracy.
    n_scored : int, default=5_000
        The number of rows on which the map is scored.
    random_state : int, default=0
        Seed of the samples, and of the model if it has none of its own.
    client : distributed.Client, str or None, default=None
        A Dask client or the address of a scheduler. The workers must have the same version of drsne, and see the files
        at the same paths. If None, all stages run in this process. The output is the same, bit for bit.
    n_jobs : int or None, default=None
        The number of threads of this process for the landmarks' map and, without a client, for all stages. Tasks on
        workers use one thread each.
    verbose : int, default=1
        If 1, a progress bar is shown for every stage, and the scores are printed. If 0, nothing is shown.

    Returns
    -------
    Fitted
        An object with the attributes ``output`` (the folder), ``model_file``, ``scores`` and ``seconds``.

    Raises
    ------
    ValueError
        If the data are damaged, have missing values, or differ in their columns or the types of these, or if the work
        folder belongs to a run with other data or settings.
    OSError
        If a file cannot be written, for example because the disk is full, or if another call uses the same output.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np, pandas as pd
    >>> import drsne
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "data").mkdir()
    >>> rng = np.random.default_rng(0)
    >>> for part in range(3):
    ...     table = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("abcd"))
    ...     table.to_parquet(folder / "data" / f"{part}.parquet")
    >>> quick = drsne.DRSNE(perplexity=10, density_neighbors=10, max_iter=100)
    >>> found = drsne.distributed.fit(folder / "data", folder / "map", model=quick, n_landmarks=80, verbose=0)
    >>> pd.read_parquet(found.output).shape
    (300, 5)
    """
    begin = time.perf_counter()
    if not isinstance(output, str | os.PathLike):
        raise TypeError(f"output must be a folder; got {output!r}. Pass the name of a new folder.")
    output = Path(os.path.abspath(output))
    work = Work(Path(f"{output}.work"))
    checks.package("pyarrow", "distributed.fit needs", EXTRA)
    sizes = {
        "n_landmarks": checks.integer("n_landmarks", n_landmarks, at_least=10),
        "coverage": checks.number("coverage", coverage, at_least=0),
        "n_checked": checks.integer("n_checked", n_checked, at_least=0),
        "n_scored": checks.integer("n_scored", n_scored, at_least=10),
    }
    seed = checks.integer("random_state", random_state, at_least=0)
    checks.jobs(n_jobs)
    checks.verbosity(verbose)
    estimator = _checked_model(model, seed)
    array = source if is_dask_array(source) else None
    _check_columns(columns, array=array is not None)
    files = [] if array is not None else parquet_files(source)
    _check_output(output, work, {path.resolve().parent for path in files})
    parts: Sequence[Part]
    parts = parquet_parts(files, columns) if array is None else array_parts(array, work.folder / INPUT)
    settings = {**sizes, "random_state": seed, "columns": list(getattr(parts[0], "columns", ()))}
    if array is not None:
        settings["array"] = [str(array.name), str(array.dtype), list(array.shape)]
    given: dict[str, Any] = {**sizes, "seed": seed, "n_jobs": n_jobs, "verbose": verbose}
    run = Run(parts=parts, work=work, output=output, estimator=estimator, array=array, **given)
    if run.n_rows < 10:
        raise ValueError(f"source must have at least 10 rows; got {run.n_rows}. Use drsne.DRSNE for small data.")
    if run.n_landmarks >= run.n_rows:
        checks.warn(
            f"All {run.n_rows} rows are landmarks, because n_landmarks={run.n_landmarks}. Use drsne.DRSNE for data "
            "that fit into memory, or lower n_landmarks."
        )
    with connected(client) as connection, work.exclusive():
        work.claim(_identity(estimator, settings), parts)
        run_all(replace(run, client=connection))
        found = work.load_json(work.path(SCORES, ending="json"))
    if verbose:
        print(placing.report(found))
    seconds = {**run.seconds, "total": round(time.perf_counter() - begin, 3)}
    return Fitted(output, work.folder / placing.MODEL, found, seconds)


def _checked_model(model: DRSNE | None, seed: int) -> DRSNE:
    """Return an estimator with the parameters of the landmarks' map, or raise an error if one is not supported."""
    if model is not None and not isinstance(model, DRSNE):
        raise TypeError(f"model must be a DRSNE or None; got {type(model).__name__}. Pass drsne.DRSNE(...).")
    estimator: DRSNE = DRSNE() if model is None else clone(model)
    if estimator.random_state is None:
        estimator.random_state = seed
    unsupported = {
        "neighbors": estimator.neighbors is not None,
        "pca_components": estimator.pca_components is not None,
        "init": not isinstance(estimator.init, str),
        "metric": callable(estimator.metric) or estimator.metric == "precomputed",
        "random_state": not isinstance(estimator.random_state, int | np.integer),
    }
    for name, wrong in unsupported.items():
        if wrong:
            raise ValueError(
                "model must have a named metric, an integer as random_state, and no neighbors, pca_components or "
                f"array as init in distributed.fit; got {name}={getattr(estimator, name)!r}. Reduce the columns of "
                "the data before, and leave the others at their defaults."
            )
    estimator._checked_parameters()
    return estimator


def _check_columns(columns: Any, *, array: bool) -> None:
    """Raise an error if the columns are not a list of different names, or if the source has no names."""
    if columns is None:
        return
    if array:
        raise ValueError(
            "columns must be None for a Dask array, whose columns have no names. Choose them with source[:, numbers]."
        )
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns must be a list of names; got {columns!r}. Pass for example columns=['a', 'b'].")
    if not len(columns) or len(set(columns)) < len(columns):
        raise ValueError(
            f"columns must be different names, and at least one; got {list(columns)!r}. Pass None for all columns."
        )


def _check_output(output: Path, work: Work, folders: set[Path]) -> None:
    """Raise an error if the results would be mixed with the data, which are in ``folders``, or with other files."""
    if not output.name:
        raise ValueError(f"output must be a folder with a name; got {str(output)!r}. Choose another folder.")
    if output.exists() and not output.is_dir():
        raise ValueError(f"output must be a folder; got the file {str(output)!r}. Choose another name.")
    if output.resolve() in folders:
        raise ValueError(f"output must not be the folder of the data; got {str(output)!r}. Choose another folder.")
    claimed = (work.folder / MANIFEST).exists()
    if not claimed and (work.has_results() or (output.is_dir() and any(output.iterdir()))):
        raise ValueError(
            f"output must be a new or empty folder, or that of an unfinished run; {str(output)!r} or "
            f"{str(work.folder)!r} has files, but there is no {MANIFEST} that says which run they belong to. Remove "
            "both folders if they are of an earlier run, or choose another output."
        )


def _identity(estimator: DRSNE, settings: dict[str, Any]) -> dict[str, Any]:
    """Return everything that the results depend on besides the data."""
    import drsne

    params = estimator.get_params(deep=False).items()
    kept = {f"model.{name}": _text(value) for name, value in params if name not in _CHANGE_NOTHING}
    return {**settings, **kept, "drsne": drsne.__version__}


def _text(value: Any) -> str:
    """Return a parameter as text. Equal numbers have the same text, also 10, 10.0 and those of NumPy."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)
