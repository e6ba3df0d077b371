"""A table of numbers with names, and the choice of its columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import did_you_mean
from drsne.tables._formats import Content, TableError

_MOSTLY = 0.9  # share of numbers above which a column with text is a column of numbers with mistakes
_SHOWN = 5  # largest number of columns that a sentence names


@dataclass(frozen=True)
class Table:
    """A matrix of numbers, and what else a file says about its rows.

    ``rows`` are the numbers of the rows in the file, from 0. ``others`` are columns that are not in the matrix, and
    ``notes`` are sentences about what was found and left out.
    """

    X: Any
    columns: list[str] | None
    index: NDArray[Any] | None
    label: NDArray[Any] | None
    others: dict[str, NDArray[Any]]
    rows: NDArray[np.intp]
    notes: list[str] = field(default_factory=list)
    document: Any = None

    @property
    def named(self) -> Any:
        """The numbers as a data frame if the columns have names, so that a model remembers them."""
        if self.columns is None or not isinstance(self.X, np.ndarray):
            return self.X
        import pandas as pd

        return pd.DataFrame(self.X, columns=self.columns)


def selected(
    content: Content, name: str, *, label: str | None, drop: Iterable[str], wanted: list[str] | None, skip: bool
) -> Table:
    """Return the numbers of a file.

    ``label`` and the columns in ``drop`` are left out of the matrix. With ``wanted``, exactly these columns are used.
    With ``skip``, rows with missing values are left out.
    """
    is_frame = hasattr(content.values, "iloc")
    own = [str(each) for each in content.values.columns] if is_frame else _names(content)
    columns = [*own, *content.others]
    dropped = [_known(each, columns, name, "--drop") for each in drop]
    if label is not None:
        _known(label, columns, name, "--label")
    if wanted is not None:
        _refuse_lacking(wanted, own, name)
        numbers, texts = wanted, [each for each in own if each not in wanted and each != label]
    else:
        left = [each for each in own if each not in (*dropped, label)]
        numbers, texts = _split(content, left, name) if is_frame else (left, [])
    if not numbers:
        raise TableError(
            f"{name} has no columns of numbers{f', only {listed(columns)}' if columns else ''}. Pass a table of "
            "numbers; text has to be encoded first."
        )
    notes = list(content.notes)
    if texts and wanted is None:
        notes.append(f"Left out {plural(len(texts), 'text column')}: {listed(texts)}.")
    X = _matrix(content, numbers, own, name) if is_frame else _columns(content.values, numbers, own)
    rows = _complete(X, numbers, name, skip)
    if len(rows) < X.shape[0]:
        notes.append(f"Left out {plural(X.shape[0] - len(rows), 'row')} with missing values.")
        X = X[rows]
    aside = [each for each in own if each not in numbers] if len(numbers) < len(own) else []
    others = {each: np.asarray(_column(content, each, own)) for each in aside} | dict(content.others)
    others = {each: np.asarray(values)[rows] for each, values in others.items()}
    return Table(
        X=X,
        columns=numbers if is_frame or content.columns is not None else None,
        index=None if content.index is None else np.asarray(content.index)[rows],
        label=None if label is None else others[label],
        others={each: values for each, values in others.items() if each != label},
        rows=rows,
        notes=notes + ([] if wanted is not None else _hints(X, numbers)),
        document=content.document,
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


def _column(content: Content, column: str, own: list[str]) -> Any:
    place = own.index(column)
    return content.values.iloc[:, place] if hasattr(content.values, "iloc") else content.values[:, place]


def _columns(values: Any, numbers: list[str], own: list[str]) -> Any:
    """Return columns of a matrix."""
    if numbers == own:
        return values
    place = {name: number for number, name in enumerate(own)}
    return values[:, [place[name] for name in numbers]]


def _refuse_lacking(wanted: list[str], own: list[str], name: str) -> None:
    present = set(own)
    lacking = [each for each in wanted if each not in present]
    if lacking:
        raise TableError(
            f"{name} lacks {len(lacking)} of the {len(wanted)} columns of the model: {listed(lacking)}. Pass a file "
            "with the same columns."
        )


def _known(column: str, columns: list[str], name: str, option: str) -> str:
    if column not in columns:
        hint = did_you_mean(column, columns)
        hint = hint or f"Its columns are {listed(columns)}."
        raise TableError(f"{option} must name a column of {name}; got {column!r}. {hint}")
    return column


def _split(content: Content, columns: list[str], name: str) -> tuple[list[str], list[str]]:
    """Return the columns of numbers and those of text, or raise an error for text among numbers."""
    own = [str(each) for each in content.values.columns]
    numbers, texts = [], []
    for column in columns:
        values = _column(content, column, own)
        if getattr(values.dtype, "kind", "O") in "biuf":
            numbers.append(column)
            continue
        wrong = _mistakes(values)
        if not wrong:
            texts.append(column)
            continue
        where = content.place(column, _not_a_number) if content.place else f"column {column!r}"
        more = f" The same is true of {plural(len(wrong) - 1, 'other value')}." if wrong[1:] else ""
        raise TableError(
            f"{name}, {where}: {wrong[0]!r} is not a number.{more} Correct the file, or leave the column out with "
            f"--drop {_quoted(column)}."
        )
    return numbers, texts


def _mistakes(values: Any) -> list[str]:
    """Return the values that are not numbers, if most values of the column are numbers."""
    present = [value for value in values if not _missing(value)]
    wrong = [str(value) for value in present if _not_a_number(value)]
    return wrong if present and len(wrong) <= (1 - _MOSTLY) * len(present) else []


def _missing(value: Any) -> bool:
    return value is None or value != value


def _not_a_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return True
    return False


def _matrix(content: Content, numbers: list[str], own: list[str], name: str) -> NDArray[np.float64]:
    """Return columns of a data frame as numbers."""
    out = np.empty((len(content.values), len(numbers)))
    for place, column in enumerate(numbers):
        try:
            out[:, place] = np.asarray(_column(content, column, own), dtype=np.float64)
        except (TypeError, ValueError) as error:
            where = content.place(column, _not_a_number) if content.place else f"column {column!r}"
            raise TableError(f"{name}, {where}: this column of the model must hold numbers ({error}).") from error
    return out


def _complete(X: Any, numbers: list[str], name: str, skip: bool) -> NDArray[np.intp]:
    """Return the rows without missing values, or raise an error that counts the missing values of every column."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return np.arange(X.shape[0])
    infinite = np.isinf(X).sum(axis=0)
    if infinite.any():
        raise TableError(
            f"{name} has infinite values: {_counts(infinite, numbers)}. Correct them, or leave the columns out with "
            f"--drop {_quoted(*np.array(numbers)[infinite > 0])}."
        )
    missing = np.isnan(X)
    if not missing.any():
        return np.arange(len(X))
    kept = np.flatnonzero(~missing.any(axis=1))
    counts = missing.sum(axis=0)
    if not skip or len(kept) == 0:
        raise TableError(
            f"{name} has missing values: {_counts(counts, numbers)}. Fill them in, leave out these columns with --drop "
            f"{_quoted(*np.array(numbers)[counts > 0])}, or leave out the {plural(len(X) - len(kept), 'row')} that "
            f"{'has' if len(X) - len(kept) == 1 else 'have'} them with --skip-missing."
        )
    return kept


def _counts(counts: NDArray[Any], numbers: list[str]) -> str:
    order = np.argsort(-counts, kind="stable")
    found = [f"{counts[place]:,} in {numbers[place]!r}" for place in order if counts[place]]
    shown = ", ".join(found[:_SHOWN])
    return shown + (f" and others in {len(found) - _SHOWN} more columns" if len(found) > _SHOWN else "")


def _quoted(*columns: str) -> str:
    """Return names of columns as the value of an option."""
    text = ",".join(columns[:_SHOWN]) + (",..." if len(columns) > _SHOWN else "")
    return f"'{text}'" if any(letter in text for letter in " ()&;$*?'\"") else text


def _hints(X: Any, numbers: list[str]) -> list[str]:
    """Return advice about columns that would distort the map."""
    hints: list[str] = []
    if not isinstance(X, np.ndarray) or len(X) < _SHOWN:
        return hints
    for place in (0, X.shape[1] - 1):
        values = X[:, place]
        if values[-1] - values[0] == len(X) - 1 and (np.diff(values) == 1).all():
            column = numbers[place]
            hints.append(f"The column {column!r} counts the rows. Leave it out with --drop {_quoted(column)}.")
            break
    return hints
