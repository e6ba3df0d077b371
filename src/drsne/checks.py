"""Checks of parameters and data, and warnings.

Each error states the parameter, its value, the rule and how to fix the problem.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Collection, Iterator
from datetime import date, timedelta
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SKIPPED_PACKAGES = ("drsne", "sklearn", "contextlib")  # a warning points at the first caller outside of them
MOST_THREADS = 10_000  # more threads than any machine can use
_TEXT_AND_DATES = (str, bytes, date, timedelta)


def number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    hint: str = "",
) -> float:
    """Return ``value`` as a float, or raise an error if it is not a finite number within its bounds."""
    rule = f"a finite number{bounds(at_least, above)}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(_message(name, rule, value, hint))
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    low = at_least is not None and result < at_least
    if not math.isfinite(result) or low or (above is not None and result <= above):
        raise ValueError(_message(name, rule, value, hint))
    if at_most is not None and result > at_most:
        raise ValueError(_message(name, f"at most {at_most:g}", value, hint))
    return result


def bounds(at_least: float | None, above: float | None) -> str:
    """Return lower bounds as the end of a rule."""
    return ("" if at_least is None else f" of at least {at_least:g}") + ("" if above is None else f" above {above:g}")


def integer(name: str, value: Any, *, at_least: int, hint: str = "") -> int:
    """Return ``value`` as an int, or raise an error if it is not an integer of at least ``at_least``."""
    rule = f"an integer of at least {at_least}"
    if isinstance(value, bool) or not isinstance(value, (Integral, Real)):
        raise TypeError(_message(name, rule, value, hint))
    if not isinstance(value, Integral) or int(value) < at_least:
        raise ValueError(_message(name, rule, value, hint))
    return int(value)


def flag(name: str, value: Any) -> bool:
    """Return ``value`` as a bool, or raise an error if it is not True or False."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(_message(name, "True or False", value, ""))
    return bool(value)


def jobs(n_jobs: Any) -> None:
    """Raise an error unless ``n_jobs`` is None or an integer other than 0 that can be a number of threads."""
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is None or (whole and 1 <= abs(int(n_jobs)) <= MOST_THREADS):
        return
    limits = f" from -{MOST_THREADS} to {MOST_THREADS}" if whole and n_jobs != 0 else ""
    hint = "Pass 1 for one thread, -1 for all cores."
    raise ValueError(_message("n_jobs", f"None or an integer{limits} other than 0", n_jobs, hint))


def verbosity(verbose: Any) -> None:
    """Raise an error unless ``verbose`` is True, False or an integer of at least 0."""
    integer("verbose", int(verbose) if type(verbose).__name__ in ("bool", "bool_") else verbose, at_least=0)


def random_numbers(random_state: Any) -> Any:
    """Return the ``numpy.random.RandomState`` of a seed, a RandomState, a Generator or None, or raise an error.

    A Generator shares its state, so two calls draw different numbers, as with a RandomState.
    """
    import numpy as np
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    try:
        return check_random_state(random_state)
    except ValueError as error:
        rule = "None, an integer from 0 to 2**32 - 1, a numpy.random.RandomState or a numpy.random.Generator"
        raise ValueError(_message("random_state", rule, random_state, "Pass an integer, such as 0.")) from error


def choice(name: str, value: Any, allowed: Collection[str], *, also: str = "", hint: str = "") -> str:
    """Return ``value`` if it is one of the ``allowed`` strings, or raise an error that lists them."""
    if not isinstance(value, str) or value not in allowed:
        options = ", ".join(repr(option) for option in sorted(allowed))
        hints = " ".join(part for part in (did_you_mean(value, allowed), hint) if part)
        raise ValueError(_message(name, f"one of {options}{also}", value, hints))
    return value


def did_you_mean(value: Any, allowed: Collection[str]) -> str:
    """Return a sentence that suggests the most similar of the ``allowed`` strings, or "" if none is similar."""
    if not isinstance(value, str):
        return ""
    from difflib import get_close_matches

    lower = {option.lower(): option for option in sorted(allowed)}
    close = get_close_matches(value.lower(), lower, n=1, cutoff=0.65)
    return f"Did you mean {lower[close[0]]!r}?" if close else ""


def refuse_other_data(name: str, values: Any) -> Any:
    """Raise an error for values that NumPy would misread: paths, AnnData, masked arrays, text, dates and NaN.

    Return the values for the checks of scikit-learn: as an array if they had to be converted, and otherwise unchanged.
    """
    import numpy as np

    if isinstance(values, (str, bytes, PathLike)):
        raise TypeError(
            f"{name} must be an array of numbers; got the text {values!r}. If this is a file, load it first, for "
            "example with pandas.read_csv."
        )
    if hasattr(values, "obsm"):
        way_out = (
            "Pass one of its arrays: adata.obsm['X_pca'] (made by scanpy.pp.pca) is a good choice, and adata.X is the "
            "full matrix. Or use drsne.tl.drsne(adata)."
        )
        refuse_cells(name, values, way_out)
    if hasattr(values, "toarray"):  # sparse matrices always hold numbers
        stored = getattr(values, "data", None)
        if isinstance(stored, np.ndarray) and (missing := _missing(stored)):
            raise ValueError(
                f"{name} must be finite; got {missing} of {stored.size} stored values. Fill them in, or drop their "
                "rows or columns."
            )
        return values
    if isinstance(values, (dict, set, Iterator)):
        raise TypeError(f"{name} must be an array of numbers; got a {type(values).__name__}. Pass a list of rows.")
    if isinstance(values, np.ma.MaskedArray) and (hidden := int(np.ma.getmaskarray(values).sum())):
        raise ValueError(
            f"{name} must have no masked values; got {hidden} of them. Fill them in (for example with .filled or an "
            "imputer), or drop their rows."
        )
    if hasattr(values, "requires_grad"):
        try:
            np.asarray(values)
        except (TypeError, RuntimeError) as error:  # it is on a GPU, requires a gradient, or has a type of its own
            gradient = " that requires a gradient" if values.requires_grad else ""
            raise TypeError(
                f"{name} must be an array that NumPy can read; got a tensor of type {values.dtype} on {values.device}"
                f"{gradient}. Pass {name}.detach().cpu().double().numpy()."
            ) from error
    array = refuse_text(name, values)
    if array is None:
        return values
    converted = _refuse_missing(name, values, array)
    if not hasattr(values, "iloc"):  # the type of a data frame depends on the types of its columns
        array = converted
    if isinstance(values, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        return values
    # The array is what scikit-learn would read the values as. It converts a data frame of other types in its own way.
    if hasattr(values, "iloc"):
        return array if all(isinstance(dtype, np.dtype) for dtype in values.dtypes) else values
    typed = hasattr(getattr(values, "dtype", None), "kind")
    return array if typed else np.asarray(array, dtype=np.float64)


def refuse_cells(name: str, values: Any, way_out: str = "Pass one of its columns, such as adata.obs['type'].") -> None:
    """Raise an error for AnnData, which NumPy would divide into single cells for minutes."""
    if hasattr(values, "obsm") and hasattr(values, "n_obs"):
        raise TypeError(f"{name} must be an array; got an {type(values).__name__} object. {way_out}")


def refuse_text(name: str, values: Any) -> NDArray[Any] | None:
    """Raise an error if ``values`` contains text or dates. For a data frame, the error names the columns.

    Return the values as an array, or None if their rows have different lengths.
    """
    import numpy as np

    if hasattr(values, "dtypes") and hasattr(values, "columns"):
        named = enumerate(zip(values.columns, values.dtypes, strict=True))
        wrong = [str(column) for place, (column, dtype) in named if _holds_text(dtype, values, place)]
        if wrong:
            raise ValueError(
                f"{name} must hold numbers; got text, dates or categories in {_listed('column', wrong)}. Encode or "
                f"drop {'them' if len(wrong) > 1 else 'it'} first."
            )
    try:
        array: NDArray[Any] = np.asarray(values)
    except ValueError:  # rows of different lengths are reported by the check of shapes
        return None
    except TypeError as error:  # the columns have no common type
        raise ValueError(f"{name} must hold numbers; got {error}. Encode or drop those columns first.") from error
    if array.dtype.kind == "V":
        raise ValueError(
            f"{name} must be an array of numbers; got a structured array with the fields {array.dtype.names}. "
            "Convert it with numpy.lib.recfunctions.structured_to_unstructured."
        )
    text = array.dtype.kind not in "biufcO"
    if text or (array.dtype.kind == "O" and any(isinstance(value, _TEXT_AND_DATES) for value in array.flat)):
        raise ValueError(f"{name} must hold numbers; got text or dates ({array.dtype}). Encode or drop them first.")
    return array


def _holds_text(dtype: Any, frame: Any, place: int) -> bool:
    """Return whether a column of a data frame holds text, dates or categories."""
    kind = str(getattr(dtype, "kind", "O"))
    if kind in "MmUS" or str(dtype) in ("category", "string", "str"):
        return True
    values = frame.iloc[:, place] if kind == "O" and hasattr(frame, "iloc") else ()
    return any(isinstance(each, _TEXT_AND_DATES) for each in values)


def _refuse_missing(name: str, values: Any, array: NDArray[Any]) -> NDArray[Any]:
    """Raise an error for NaN and infinity, which reports how many there are, and in which columns.

    Return the array, with objects converted to numbers if possible.
    """
    import numpy as np

    if array.dtype.kind == "O" and hasattr(values, "isna"):  # a data frame with its own kind of missing values
        array = np.where(values.isna(), np.nan, array)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):  # the check of types reports this
            return array
    missing = _missing(array) if array.ndim == 2 else ""
    if missing:
        places = np.flatnonzero(~np.isfinite(array).all(axis=0))
        named = [str(values.columns[c]) if hasattr(values, "columns") else str(c) for c in places]
        raise ValueError(
            f"{name} must be finite; got {missing} of {array.size} values, in {_listed('column', named)}. Fill them in "
            "(for example with sklearn.impute.SimpleImputer), or drop their rows or columns."
        )
    return array


def _missing(array: NDArray[Any]) -> str:
    """Return how many numbers are NaN or infinite, as the beginning of an error, or "" if there are none."""
    import numpy as np

    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return ""
    kinds = {"NaN": np.isnan(array).any(), "infinity": np.isinf(array).any()}
    return f"{' and '.join(kind for kind in kinds if kinds[kind])} in {int((~np.isfinite(array)).sum())}"


def _listed(what: str, names: list[str], most: int = 5) -> str:
    """Return names as text, listing at most ``most`` of them."""
    shown = ", ".join(repr(name) if not name.isdigit() else name for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{what}{'s' if len(names) > 1 else ''} {shown}{more}"


def package(name: str, what: str, extra: str) -> Any:
    """Import an optional package, or raise an error that says what needs it (such as "Plots need") and its extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{what} {name}: pip install 'drsne[{extra}]'.") from error


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or the NA of pandas."""
    if value is None or type(value).__name__ == "NAType":  # a comparison with NA has no truth value
        return True
    try:
        return bool(value != value)
    except (ValueError, ArithmeticError):  # an array, or a signalling NaN
        return False


def warn(message: str) -> None:
    """Issue a UserWarning that points at the calling line outside this package and scikit-learn's wrappers."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _SKIPPED_PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def _message(name: str, rule: str, value: Any, hint: str) -> str:
    return f"{name} must be {rule}; got {value!r}.{' ' + hint if hint else ''}"
