"""Model files: a fitted model in an NPZ file. Loading a file executes no code that is in it.

The first array of the file has the bytes of JSON: the version of the format, the parameters and the fitted attributes,
which refer to the other arrays by their numbers. The checksums of the archive are verified before anything is used.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from drsne.io.writing import replacing
from drsne.precision import NEARLY_DOUBLE, SINGLE

VERSION = 1  # version of the format; a change that older versions of drsne cannot read raises it
_KINDS = "biufU"  # kinds of NumPy types that a file can hold
_OF_PCA = (
    "n_components", "svd_solver", "random_state", "components_", "mean_", "explained_variance_", "singular_values_",
    "explained_variance_ratio_", "noise_variance_", "n_components_", "n_samples_", "n_features_in_",
    "score_bits_",
)  # fmt: skip
_NOT_SAVED = ("callbacks", "neighbors")  # parameters that only matter during a fit


class ModelFileError(ValueError):
    """An error for a file that is not a readable model file."""


class _Writer:
    """JSON with references to arrays."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self._numbers: dict[int, int] = {}

    def encoded(self, value: Any, name: str) -> Any:
        """Return a value as JSON. Arrays are kept aside, and dataclasses and NamedTuples are named by their class."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray) and value.dtype.kind == "O" and all(isinstance(each, str) for each in value):
            value = value.astype(str)
        if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
            if id(value) not in self._numbers:  # several attributes can share an array
                self.arrays.append(np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")))
                self._numbers[id(value)] = len(self.arrays) - 1
            return {"array": self._numbers[id(value)]}
        if sp.issparse(value):
            rows = sp.csr_matrix(value)
            parts = [self.encoded(part, name) for part in (rows.data, rows.indices, rows.indptr)]
            return {"csr": parts, "shape": list(rows.shape)}
        if isinstance(value, dict):
            return {"dict": [[key, self.encoded(each, f"{name}[{key!r}]")] for key, each in value.items()]}
        names = _attributes(value)
        if names:
            described = {each: self.encoded(getattr(value, each), each) for each in names}
            return {"class": type(value).__name__, "fields": described}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.encoded(each, name) for each in value]}
        raise ValueError(
            f"{name} must be a number, a string, an array or an object of drsne to be saved; got {value!r}. Use pickle "
            "for this model, or change this parameter."
        )


def _classes() -> dict[str, Any]:
    """Return the classes that a file may name."""
    from sklearn.decomposition import PCA

    from drsne.affinities import Calibration
    from drsne.optimize.schedule import Adam, Momentum, Phase, Schedule
    from drsne.placement.reference import Law, Training
    from drsne.regions import Arranged
    from drsne.terms.objective import Objective
    from drsne.terms.profile import Smoothing
    from drsne.terms.term import Density, MapTerm, RadiusTerm

    ours = (Adam, Arranged, Calibration, Density, Law, MapTerm, Momentum, Objective, Phase, RadiusTerm, Schedule)
    return {kind.__name__: kind for kind in (*ours, Smoothing, Training, PCA)}


def _attributes(value: Any) -> list[str]:
    """Return the names of the attributes of an object that are saved, or none if it cannot be saved."""
    if is_dataclass(value):
        return [field.name for field in fields(value) if not field.name.startswith("_")]
    if type(value).__name__ not in _classes():
        return []
    return list(getattr(value, "_fields", ())) or [name for name in _OF_PCA if hasattr(value, name)]


def _decoded(value: Any, arrays: list[Any], classes: dict[str, Any]) -> Any:
    """Return the value of some JSON, which may name only these classes."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "csr" in value:
        return sp.csr_matrix(tuple(arrays[part["array"]] for part in value["csr"]), shape=tuple(value["shape"]))
    if "dict" in value:
        return {key: _decoded(each, arrays, classes) for key, each in value["dict"]}
    for kind in (list, tuple):
        if kind.__name__ in value:
            return kind(_decoded(each, arrays, classes) for each in value[kind.__name__])
    given = {name: _decoded(each, arrays, classes) for name, each in value["fields"].items()}
    if value["class"] != "PCA":
        return classes[value["class"]](**given)
    made = classes["PCA"]()
    for name, each in given.items():
        if name not in _OF_PCA:
            raise KeyError(name)
        setattr(made, name, each)
    return made


def save(model: Any, path: str | os.PathLike[str], *, include_data: bool = True) -> None:
    """Write a fitted model to a file. The estimators document what is saved."""
    from sklearn.utils.validation import check_is_fitted

    import drsne

    check_is_fitted(model, "embedding_")
    try:
        _check_consistent(model)
    except ValueError as error:
        raise ValueError(
            f"This model cannot be saved, because its parameters were changed after the fit ({error}). Restore them "
            "with set_params, or fit it again."
        ) from error
    if not type(model).__module__.startswith("drsne."):
        raise ValueError(
            f"Only DRSNE and DenSNE can be saved in this format; got the subclass {type(model).__name__}. Use pickle."
        )
    path = Path(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"path must be a file in an existing folder; got {str(path)!r}. Create the folder first.")
    writer = _Writer()
    params = {name: value for name, value in model.get_params(deep=False).items() if name not in _NOT_SAVED}
    if isinstance(params.get("random_state"), np.random.RandomState | np.random.Generator):
        params["random_state"] = None
    reference = model._reference
    digest = ""
    if reference is not None:
        digest = reference.digest  # of a model that was loaded without its data
        if reference.training.rows is not None:
            digest = data_digest(reference.training.rows)
            if not include_data:
                reference = replace(reference, training=replace(reference.training, rows=None))
    fitted = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name != "affinities_"
    }
    header = {
        "format": VERSION,
        "drsne": drsne.__version__,
        "class": type(model).__name__,
        "params": {name: writer.encoded(value, name) for name, value in params.items()},
        "fitted": {name: writer.encoded(value, name) for name, value in fitted.items()},
        "data": digest,
        "output": getattr(model, "_sklearn_output_config", {}).get("transform"),
        "reference": None,
    }
    if reference is not None:
        names = ("training", "scales", "density")
        header["reference"] = {name: writer.encoded(getattr(reference, name), name) for name in names}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, *writer.arrays, drsne=text)  # the header becomes the first member


def data_digest(rows: Any) -> str:
    """Return a digest of training rows, by which data that are passed again are recognised.

    It does not depend on the order in which a sparse matrix stores the values of a row, nor on the type of its indices.
    """
    if sp.issparse(rows):
        rows = sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape, copy=True)
        rows.sum_duplicates()
    parts = (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (np.ascontiguousarray(rows),)
    digest = hashlib.sha256(str((rows.shape, str(rows.dtype))).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def is_model(start: bytes) -> bool:
    """Return whether a file with these first bytes is a model file: a ZIP archive whose first member is the header."""
    return start.startswith(b"PK\x03\x04") and start[30:].startswith(b"drsne.npy")


def loaded(path: str | os.PathLike[str], kinds: dict[str, Any], others: dict[str, Any], X: Any) -> Any:
    """Return the model in a file, one of ``kinds``. Its attributes can also be objects of the classes ``others``."""
    from drsne.placement.reference import Reference

    classes = {**_classes(), **others}
    header, arrays = _parts(Path(path))
    try:
        for array in arrays:
            if array.dtype.kind not in _KINDS:
                raise ValueError(f"an array has the type {array.dtype}")
            if array.dtype.kind == "U":
                array.tolist()  # raises an error for characters that do not exist
        kind = kinds[header["class"]]
        model = kind(**{name: _decoded(value, arrays, classes) for name, value in header["params"].items()})
        for name, value in header["fitted"].items():
            if not name.endswith("_") or name.startswith("_") or hasattr(kind, name):
                raise ValueError(f"{name} is not a fitted attribute")
            setattr(model, name, _decoded(value, arrays, classes))
        model._reference = None
        if header["reference"] is not None:
            parts = {name: _decoded(value, arrays, classes) for name, value in header["reference"].items()}
            digest = str(header["data"])
            places = np.asarray(model.embedding_, dtype=np.float64)
            model._reference = Reference(places=places, digest=digest, **parts)
        _check_consistent(model)
        if header["output"] is not None:
            model.set_output(transform=header["output"])
    except Exception as error:  # contents of another kind can raise any error
        raise ModelFileError(
            f"{path} is a model file of drsne {header.get('drsne', '(unknown version)')} that this version cannot "
            f"read ({type(error).__name__}: {error}). Fit the model again, or use the version that wrote it."
        ) from error
    if X is not None:
        _give_data(model, X)
    return model


def _check_consistent(model: Any) -> None:
    """Raise an error unless the parts of a model have the right types and fit together."""
    n, d = model.embedding_.shape
    if model.embedding_.dtype not in (np.float32, np.float64) or not np.isfinite(model.embedding_).all():
        raise ValueError("the map is not made of finite numbers")
    if int(model.n_components) != d:
        raise ValueError("the map has another number of dimensions than the parameters")
    for name in ("precisions_", "pca_", "n_features_in_", "engine_", "kl_divergence_", "n_iter_", "history_"):
        getattr(model, name)
    model._checked_parameters()
    if model.pca_ is not None:
        wanted = {"components_": (len(model.pca_.components_), model.n_features_in_), "mean_": (model.n_features_in_,)}
        for name, shape in wanted.items():
            _check_array(getattr(model.pca_, name), shape)
        if model.pca_.score_bits_ not in (SINGLE, NEARLY_DOUBLE):
            raise ValueError("the principal components have an unknown precision")
    if model._reference is None:
        return
    training = model._reference.training
    if isinstance(model.metric, str) and training.metric != model.metric:
        raise ValueError(f"metric is {model.metric!r}, but that of the fit is {training.metric!r}")
    _check_types(training)
    _check_types(model._reference.density)
    columns = model.n_features_in_ if model.pca_ is None else len(model.pca_.components_)
    masses = np.ones(n) if training.masses is None else training.masses
    spacings = training.radii if training.spacings is None else training.spacings
    for array in (training.radii, spacings, training.precisions, training.offsets, model._reference.scales, masses):
        _check_array(array, (n,))
    positive = (masses, model._reference.scales, training.radii + 1.0, spacings + 1.0)
    if not all(np.isfinite(array).all() and (array > 0.0).all() for array in positive):
        raise ValueError("an array has values that are not finite or not positive")
    if training.rows is not None:
        if training.rows.shape != (n, columns):
            raise ValueError("the training data have a wrong shape")
        if sp.issparse(training.rows):
            training.rows.check_format(full_check=True)
    searched, listed = training.searched_neighbors, max(training.affinity_neighbors, training.density_neighbors)
    most = searched if training.masses is None else max(searched, int(masses.sum()) + 1)
    if not 0 < searched < n or not 1 <= training.affinity_neighbors <= most or not 0 <= listed <= most:
        raise ValueError("a number of neighbours is wrong")


def _check_array(array: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != np.float64:
        raise ValueError("an array has a wrong shape or type")


def _check_types(value: Any) -> None:
    """Raise an error unless the fields of a dataclass or NamedTuple have the types of their annotations."""
    plain = {"float": (int, float), "int": (int,), "bool": (bool,), "str": (str,)}
    for name, annotation in type(value).__annotations__.items():
        field, kind = getattr(value, name), str(getattr(annotation, "__forward_arg__", annotation))
        known = _classes().get(kind)
        if known is not None:
            if not isinstance(field, known):
                raise ValueError(f"{name} has a wrong type")
            _check_types(field)
        elif kind in plain and (not isinstance(field, plain[kind]) or (kind != "bool" and isinstance(field, bool))):
            raise ValueError(f"{name} has a wrong type")
        elif kind == "float" and not math.isfinite(field):
            raise ValueError(f"{name} is not finite")


def _give_data(model: Any, X: Any) -> None:
    """Give the training data to a model that was saved without them."""
    from drsne.backends.numba.threads import Workers
    from drsne.pca import scores

    reference = model._reference
    if reference is None or model._precomputed:
        raise ValueError("X is not needed: this model places no new rows, or takes distances. Load it without X.")
    rows = model._validated(X)
    rows = sp.csr_matrix(rows, dtype=np.float64) if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    if model.pca_ is not None:
        with Workers(model.n_jobs) as workers:
            rows = scores(model.pca_, rows, workers)
    elif model.embedding_.dtype == np.float32:
        rows = rows.astype(np.float32)
    if data_digest(rows) != reference.digest:
        raise ValueError(
            f"X must be the training data of the saved model; got data of shape {rows.shape} that differ from them. "
            "Pass the same rows in the same order and of the same type."
        )
    model._reference = replace(reference, training=replace(reference.training, rows=rows))


def _parts(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Return the header and the arrays of a file, after its checksums were verified."""
    with path.open("rb") as stream:
        if not is_model(stream.read(64)):
            raise ModelFileError(
                f"{path} is not a model file of drsne. Write one with model.save(path) or drsne embed --model."
            )
        stream.seek(0)
        try:
            with np.load(stream, allow_pickle=False) as archive:
                if archive.zip.testzip() is not None:
                    raise ValueError("its contents do not match their checksum")
                header: dict[str, Any] = json.loads(bytes(archive["drsne"]))
                version = int(header["format"])
                arrays = [archive[f"arr_{place}"] for place in range(len(archive.files) - 1)]
        except Exception as error:  # a damaged archive can raise any error
            raise ModelFileError(f"{path} is damaged ({error}). Copy it again, or save the model again.") from error
    if version > VERSION:
        raise ModelFileError(
            f"{path} has version {version} of the format of model files, and this drsne reads up to version {VERSION}. "
            "It was written by a newer drsne: upgrade with pip install -U drsne."
        )
    return header, arrays
