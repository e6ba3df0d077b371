"""A table of numbers with names, and the choice of its columns."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import did_you_mean, is_missing
from drsne.tables._formats import Content, TableError
from drsne.tables._values import number

_FEW = 0.1  # largest share of text in a column of numbers with mistakes
_SHOWN = 5  # largest number of columns that a sentence names
_LISTED = 20  # largest number of columns in the value of an option that a sentence recommends


@dataclass(frozen=True)
class Table:
    """A matrix of numbers, and what else a file says about its rows.

    ``X`` is a NumPy array or a sparse matrix of floating-point numbers. ``rows`` are the numbers of the rows in the
    file, from 0. ``n_rows`` is the number of all rows of the file, including those that were left out. ``index`` are
    the names of the rows, and ``index_name`` is what the file calls them. ``others`` are columns that are not in the
    matrix, and ``notes`` are sentences about what was found and left out.
    """

    X: Any
    columns: list[str] | None
    index: NDArray[Any] | None
    label: NDArray[Any] | None
    others: dict[str, NDArray[Any]]
    rows: NDArray[np.intp]
    n_rows: int
    notes: list[str] = field(default_factory=list)
    document: Any = None
    index_name: str | None = None


def selected(
    content: Content, name: str, *, label: str | None, drop: Iterable[str], wanted: list[str] | None, skip: bool
) -> Table:
    """Return the numbers of a file.

    ``label`` and the columns in ``drop`` are left out of the matrix. With ``wanted``, exactly these columns are used.
    With ``skip``, rows with missing values are left out.
    """
    is_frame = hasattr(content.values, "iloc")
    own = [str(each) for each in content.values.columns] if is_frame else _names(content)
    places: dict[str, int] = {}
    for place, each in enumerate(own):
        places.setdefault(each, place)
    known = {**places, **content.others}
    apart = {_known(each, known, name, "--drop") for each in drop}
    if label is not None:
        apart.add(_known(label, known, name, "--label"))
    notes = list(content.notes)
    if wanted is not None:
        _refuse_lacking(wanted, places, name)
        numbers = [places[each] for each in wanted]
    else:
        numbers = [place for place, each in enumerate(own) if each not in apart]
        if is_frame:
            numbers, remarks = _numeric(content, numbers, own, name)
            notes += remarks
    if not numbers:
        raise TableError(
            f"{name} has no columns of numbers{f', only {listed(list(known))}' if known else ''}. Pass a table of "
            "numbers; text has to be encoded first."
        )
    used = [own[place] for place in numbers]
    X = _matrix(content, numbers, own, name) if is_frame else _floating(_columns(content.values, numbers))
    rows, n_rows = _complete(X, used, name, skip), int(X.shape[0])
    if len(rows) < n_rows:
        notes.append(f"Left out {plural(n_rows - len(rows), 'row')} with missing values.")
        X = X[rows]
    rest = set(own) - set(used) if is_frame else apart & places.keys()
    others = {each: column_of(content.values, places[each]) for each in own if each in rest} | dict(content.others)
    others = {each: np.asarray(values)[rows] for each, values in others.items()}
    if label is not None and label not in others:  # the model uses the column of the label, too
        others[label] = column_of(content.values, places[label])[rows]
    return Table(
        X=X,
        columns=used if is_frame or content.columns is not None else None,
        index=None if content.index is None else np.asarray(content.index)[rows],
        label=None if label is None else others[label],
        others={each: values for each, values in others.items() if each != label},
        rows=rows,
        n_rows=n_rows,
        notes=notes + ([] if wanted is not None else _hints(X, used)),
        document=content.document,
        index_name=content.index_name,
    )


def listed(names: list[str]) -> str:
    """Return names as text, at most five of them."""
    shown = ", ".join(repr(str(name)) for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def plural(count: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _names(content: Content) -> list[str]:
    """Return the names of the columns of a matrix."""
    if content.columns is not None:
        return [str(each) for each in content.columns]
    return [f"x{place + 1}" for place in range(content.values.shape[1])]


def column_of(values: Any, place: int) -> NDArray[Any]:
    """Return a column of a data frame or of a matrix as an array, with NaN for missing values of pandas."""
    if not hasattr(values, "iloc"):
        column = values[:, [place]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    column = values.iloc[:, place]
    if isinstance(column.dtype, np.dtype) or column.dtype.kind == "M" or not column.isna().any():
        return np.asarray(column)
    dtype = np.float64 if column.dtype.kind in "iuf" else object
    return np.asarray(column.to_numpy(dtype=dtype, na_value=np.nan))


def _columns(values: Any, numbers: list[int]) -> Any:
    """Return columns of a matrix."""
    return values if numbers == list(range(values.shape[1])) else values[:, numbers]


def _floating(X: Any) -> Any:
    """Return a matrix of floating-point numbers."""
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def _refuse_lacking(wanted: list[str], present: Collection[str], name: str) -> None:
    lacking = [each for each in wanted if each not in present]
    if lacking:
        raise TableError(
            f"{name} lacks {len(lacking)} of the {len(wanted)} columns of the model: {listed(lacking)}. Pass a file "
            "with the same columns."
        )


def _known(column: str, columns: Collection[str], name: str, option: str) -> str:
    if column not in columns:
        hint = did_you_mean(column, columns)
        hint = hint or f"Its columns are {listed(list(columns))}."
        raise TableError(f"{option} must name a column of {name}; got {column!r}. {hint}")
    return column


def _numeric(content: Content, places: list[int], own: list[str], name: str) -> tuple[list[int], list[str]]:
    """Return the columns of numbers among some columns, and sentences about the others.

    Raises an error for a column of numbers with mistakes.
    """
    numbers, texts, stored = [], [], []
    for place in places:
        values = content.values.iloc[:, place]
        if values.dtype.kind in "biuf":
            numbers.append(place)
            continue
        wrong = _mistakes(values, content.decimal)
        if wrong is None:
            texts.append(own[place])
            continue
        if wrong:
            more = f" The same is true of {plural(len(wrong) - 1, 'other value')}." if wrong[1:] else ""
            raise TableError(
                f"{name}, {_where(content, own[place])}: {str(wrong[0])!r} is not a number.{more} Correct the file, or "
                f"leave the column out with {_drop([own[place]])}."
            )
        numbers.append(place)
        if any(isinstance(value, str) for value in values):
            stored.append(own[place])
    notes = [f"Left out {plural(len(texts), 'text column')}: {listed(texts)}."] if texts else []
    if stored:
        option = _drop(stored)
        notes.append(
            f"The numbers of {plural(len(stored), 'column')} are stored as text: {listed(stored)}. If they are labels, "
            f"leave them out{f' with {option}' if option else ''}."
        )
    return numbers, notes


def _mistakes(values: Any, decimal: str) -> list[Any] | None:
    """Return the values of a column of numbers that are not numbers, or None for a column of text.

    In a column of numbers, at most one value in ten is text. In a short column of more than two values, one value is.
    """
    if values.dtype.kind != "O" or values.dtype.name == "category":  # dates and categories
        return None
    present = [value for value in values if not is_missing(value)]
    wrong = [value for value in present if number(value, decimal) is None]
    if not present or len(wrong) > max(_FEW * len(present), 1 if len(present) > 2 else 0):
        return None
    return wrong


def _where(content: Content, column: str) -> str:
    """Return where a column first has a value that is not a number."""
    if content.place is None:
        return f"column {column!r}"
    return content.place(column, lambda value: number(value, content.decimal) is None)


def _matrix(content: Content, places: list[int], own: list[str], name: str) -> NDArray[np.float64]:
    """Return columns of a data frame as numbers, with NaN for missing values."""
    out = np.empty((len(content.values), len(places)))
    for column, place in enumerate(places):
        values = content.values.iloc[:, place]
        if values.dtype.kind in "biuf":
            out[:, column] = column_of(content.values, place)
            continue
        found = [np.nan if is_missing(value) else number(value, content.decimal) for value in values]
        if None in found:
            wrong = str(values.iloc[found.index(None)])
            raise TableError(
                f"{name}, {_where(content, own[place])}: {wrong!r} is not a number, and this column of the model must "
                "hold numbers. Correct the file."
            )
        out[:, column] = found
    return out


def _complete(X: Any, names: list[str], name: str, skip: bool) -> NDArray[np.intp]:
    """Return the rows without missing values, or raise an error that counts the missing values of every column."""
    _, infinite = _marked(X, np.isinf)
    if infinite.any():
        option = _drop([each for each, count in zip(names, infinite, strict=True) if count])
        raise TableError(
            f"{name} has infinite values: {_counts(infinite, names)}. Correct them, or leave the columns out"
            f"{f' with {option}' if option else ''}."
        )
    by_row, by_column = _marked(X, np.isnan)
    kept = np.flatnonzero(by_row == 0)
    lost = X.shape[0] - len(kept)
    if lost and (not skip or not len(kept)):
        option = _drop([each for each, count in zip(names, by_column, strict=True) if count])
        raise TableError(
            f"{name} has missing values: {_counts(by_column, names)}. Fill them in, leave out these columns"
            f"{f' with {option}' if option else ''}, or leave out the {plural(lost, 'row')} that "
            f"{'has' if lost == 1 else 'have'} them with --skip-missing."
        )
    return kept


def _marked(X: Any, test: Callable[[Any], Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return in each row, and in each column, the number of values for which ``test`` is true."""
    if isinstance(X, np.ndarray):
        marks = test(X)
        return marks.sum(axis=1), marks.sum(axis=0)
    entries = X.tocoo()
    marks = test(entries.data)
    rows, columns = X.shape
    return np.bincount(entries.row[marks], minlength=rows), np.bincount(entries.col[marks], minlength=columns)


def _counts(counts: NDArray[Any], names: list[str]) -> str:
    order = np.argsort(-counts, kind="stable")
    found = [f"{counts[place]:,} in {names[place]!r}" for place in order if counts[place]]
    shown = ", ".join(found[:_SHOWN])
    return shown + (f" and others in {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else "")


def _drop(columns: list[str]) -> str:
    """Return the option that leaves out columns, as it is typed in a shell, or "" if there are too many of them."""
    if len(columns) > _LISTED:
        return ""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(columns)  # names with commas are quoted
    value = shlex.quote(text.getvalue())
    return f"--drop={value}" if text.getvalue().startswith("-") else f"--drop {value}"


def _hints(X: Any, names: list[str]) -> list[str]:
    """Return advice about columns that would distort the map."""
    if not isinstance(X, np.ndarray) or len(X) < _SHOWN:
        return []
    for place in (0, X.shape[1] - 1):
        values = X[:, place].astype(np.float64)
        if values[-1] - values[0] == len(X) - 1 and (np.diff(values) == 1).all():
            return [f"The column {names[place]!r} counts the rows. Leave it out with {_drop([names[place]])}."]
    return []
