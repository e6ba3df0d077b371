"""Tables in files: reading the data of users, and writing maps.

:func:`read` returns a :class:`Table` of numbers with everything else that the file says about its rows. :func:`write`
writes columns. Every error is one sentence that says what is wrong, where, and what to do.
"""

from __future__ import annotations

import csv
import io
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne.checks import did_you_mean, is_missing
from drsne.io.formats import FORMATS, by_extension, extensions, format_of
from drsne.io.sources import Content, Source, TableError, column_of, listed, number, numbered, plural
from drsne.io.writing import replacing

__all__ = [
    "FORMATS", "WRITABLE", "Source", "Table", "TableError", "by_extension", "check_columns", "check_output",
    "column_of", "format_of", "known_column", "numbered", "read", "read_content", "row_names", "with_map", "write",
]  # fmt: skip

WRITABLE = extensions(lambda each: each.write is not None)  # extensions of tables that can be written
_SMALL = 1 << 26  # number of bytes below which the free memory is not checked
_FEW = 0.1  # largest share of text in a column of numbers with mistakes
_SHOWN = 5  # largest number of columns that a sentence names
_LISTED = 20  # largest number of columns in the value of an option that a sentence recommends


@dataclass(frozen=True)
class Table:
    """A matrix of numbers, and what else a file says about its rows."""

    X: Any  # NumPy array or sparse matrix of floating-point numbers
    columns: list[str] | None
    index: NDArray[Any] | None  # names of the rows
    label: NDArray[Any] | None
    others: dict[str, NDArray[Any]]  # columns that are not in the matrix
    rows: NDArray[np.intp]  # numbers of the rows in the file, from 0
    n_rows: int  # number of all rows of the file, including those that were left out
    notes: list[str] = field(default_factory=list)  # sentences about what was found and left out
    document: Any = None
    index_name: str | None = None  # what the file calls the names of the rows


def read(
    path: str | Path | Source,
    *,
    label: str | None = None,
    drop: Iterable[str] = (),
    columns: list[str] | None = None,
    skip_missing: bool = False,
    **options: Any,
) -> Table:
    """Read a table of finite numbers, or raise a :class:`TableError`.

    The column ``label`` is kept apart, and those of ``drop`` are not part of the matrix. With ``columns``, exactly
    these columns are used, in this order. With ``skip_missing``, rows with missing values are left out; otherwise they
    are an error. A stream that was read before must be passed as the same Source. :func:`read_content` has the other
    options.
    """
    source = path if isinstance(path, Source) else Source(path)
    content, name = read_content(source, **options), source.name
    values, own = content.values, content.names
    places: dict[str, int] = {}
    for place, each in enumerate(own):
        places.setdefault(each, place)
    known = {**places, **content.others}
    apart = {known_column(each, known, name, "--drop") for each in drop}
    if label is not None:
        apart.add(known_column(label, known, name, "--label"))
    lacking = [each for each in columns or () if each not in places]
    if columns is not None and lacking:
        raise TableError(
            f"{name} lacks {len(lacking)} of the {len(columns)} columns of the model: {listed(lacking)}. Pass a file "
            "with the same columns."
        )
    chosen = [place for place, each in enumerate(own) if each not in apart]
    chosen = chosen if columns is None else [places[each] for each in columns]
    chosen, X, remarks = _numbers(content, chosen, own, name, columns is None)
    notes = [*content.notes, *remarks]
    if not chosen:
        raise TableError(
            f"{name} has no columns of numbers{f', only {listed(list(known))}' if known else ''}. Pass a table of "
            "numbers; text has to be encoded first."
        )
    used, n_rows = [own[place] for place in chosen], int(X.shape[0])
    rows = _complete(X, used, name, skip_missing)
    if len(rows) < n_rows:
        notes.append(f"Left out {plural(n_rows - len(rows), 'row')} with missing values.")
        X = X[rows]
    rest = set(own) - set(used) if content.is_frame else apart & places.keys()
    if label in places:  # the model may use the column of the label, too
        rest.add(label)
    others = {each: column_of(values, places[each]) for each in own if each in rest} | dict(content.others)
    others = {each: np.asarray(column)[rows] for each, column in others.items()}
    return Table(
        X=X,
        columns=used if content.is_frame or content.columns is not None else None,
        index=None if content.index is None else np.asarray(content.index)[rows],
        label=None if label is None else others.pop(label),
        others=others,
        rows=rows,
        n_rows=n_rows,
        notes=notes + (_hints(X, used) if columns is None else []),
        document=content.document,
        index_name=content.index_name,
    )


def read_content(
    source: Source,
    *,
    format: str | None = None,
    array: str | None = None,
    use_rep: str | None = None,
    header: bool | None = None,
) -> Content:
    """Return all that a file holds, before columns are chosen.

    ``format`` (by default, from the extension or the contents) is a name in ``FORMATS``. ``array`` names the array of
    an NPZ file, and ``use_rep`` the representation of an H5AD file. ``header`` says whether the first line of a text
    file, or the last one that begins with "#" before the table, has names. By default, this is detected.
    """
    source.check()
    used = FORMATS[format_of(source, format)]
    used.check_packages()
    options = {"array": array, "use_rep": use_rep, "header": header}
    needed, free = 0, None
    with suppress(Exception):  # a damaged file is reported when it is read
        needed = used.estimate(source, options)
        if needed >= _SMALL:
            from drsne.estimators import memory  # imports compiled code, which small files do not need

            free = memory.available()
    if free is not None and needed > free:
        raise TableError(
            f"{source.name} needs about {needed / 1e9:.1f} GB of memory to be read, but only {free / 1e9:.1f} GB "
            "are free. Pass a file with a sample of its rows, or with only the columns that you need."
        )
    try:
        return used.read(source, options)
    except MemoryError as error:
        raise TableError(f"{source.name} is too large for the free memory. Pass a sample of its rows.") from error


def known_column(column: str, columns: Collection[str], name: str, option: str) -> str:
    """Return the column that an option names, or raise an error if ``name`` has no such column."""
    if column not in columns:
        hint = did_you_mean(column, columns) or f"Its columns are {listed(list(columns)) or 'not known'}."
        raise TableError(f"{option} must name a column of {name}; got {column!r}. {hint}")
    return column


def _numbers(
    content: Content, places: list[int], own: list[str], name: str, choose: bool
) -> tuple[list[int], Any, list[str]]:
    """Return the columns of numbers among some columns, their values, and sentences about the other columns.

    With ``choose``, columns of text are left out. Otherwise all columns must hold numbers. In a column of numbers, at
    most one value in ten is text, which is a mistake. In a short column of more than two values, one value is.
    """
    frame = content.values
    if not content.is_frame:
        X = frame if places == list(range(frame.shape[1])) else frame[:, places]
        return places, X if X.dtype.kind == "f" else X.astype(np.float64), []
    numbers: list[int] = []
    texts, stored = [], []
    converted: dict[int, NDArray[np.float64]] = {}
    for place in places:
        column = frame.iloc[:, place]
        if column.dtype.kind not in "biuf":
            is_text = choose and (column.dtype.kind != "O" or column.dtype.name == "category")  # dates and categories
            given = [] if is_text else [None if is_missing(value) else value for value in column]
            parsed = [np.nan if value is None else number(value, content.decimal) for value in given]
            wrong = [value for value, found in zip(given, parsed, strict=True) if found is None]
            present = sum(value is not None for value in given)
            if choose and (not present or len(wrong) > max(_FEW * present, 1 if present > 2 else 0)):
                texts.append(own[place])
                continue
            if wrong:
                raise _mistake(content, own[place], name, wrong, choose)
            converted[place] = np.array(parsed, dtype=np.float64)
            if any(isinstance(value, str) for value in given):
                stored.append(own[place])
        numbers.append(place)
    X = np.empty((len(frame), len(numbers)))
    for at, place in enumerate(numbers):
        X[:, at] = converted[place] if place in converted else column_of(frame, place)
    notes = [f"Left out {plural(len(texts), 'text column')}: {listed(texts)}."] if texts else []
    if stored and choose:
        notes.append(
            f"The numbers of {plural(len(stored), 'column')} are stored as text: {listed(stored)}. If they are labels, "
            f"leave them out{_drop(stored)}."
        )
    return numbers, X, notes


def _mistake(content: Content, column: str, name: str, wrong: list[Any], choose: bool) -> TableError:
    """Return the error for values of a column that are not numbers, with the line of the first one."""
    where = f"column {column!r}"
    if content.place is not None:
        where = content.place(column, lambda value: number(value, content.decimal) is None)
    more = f" The same is true of {plural(len(wrong) - 1, 'other value')}." if wrong[1:] else ""
    way = f", or leave the column out{_drop([column])}" if choose else ", because the model uses this column"
    return TableError(f"{name}, {where}: {str(wrong[0])!r} is not a number.{more} Correct the file{way}.")


def _complete(X: Any, names: list[str], name: str, skip: bool) -> NDArray[np.intp]:
    """Return the rows without missing values, or raise an error that counts the missing values of every column."""
    _, infinite = _marked(X, np.isinf)
    by_row, missing = _marked(X, np.isnan)
    kept = np.flatnonzero(by_row == 0)
    lost = X.shape[0] - len(kept)
    if not infinite.any() and (not lost or (skip and len(kept))):
        return kept
    counts = infinite if infinite.any() else missing
    places = [int(place) for place in np.argsort(-counts, kind="stable") if counts[place]]
    shown = ", ".join(f"{counts[place]:,} in {names[place]!r}" for place in places[:_SHOWN])
    shown += f" and others in {len(places) - _SHOWN} more columns" if len(places) > _SHOWN else ""
    option = _drop([names[place] for place in sorted(places)])
    if infinite.any():
        raise TableError(f"{name} has infinite values: {shown}. Correct them, or leave the columns out{option}.")
    raise TableError(
        f"{name} has missing values: {shown}. Fill them in, leave out these columns{option}, or leave out the "
        f"{plural(lost, 'row')} that {'has' if lost == 1 else 'have'} them with --skip-missing."
    )


def _marked(X: Any, test: Callable[[Any], Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return in each row, and in each column, the number of values for which ``test`` is true."""
    if isinstance(X, np.ndarray):
        marks = test(X)
        return marks.sum(axis=1), marks.sum(axis=0)
    X = X.tocoo()
    rows, columns = (at[test(X.data)] for at in (X.row, X.col))
    return np.bincount(rows, minlength=X.shape[0]), np.bincount(columns, minlength=X.shape[1])


def _drop(columns: list[str]) -> str:
    """Return the option that leaves out columns, as it is typed in a shell, or "" if there are too many of them."""
    if len(columns) > _LISTED:
        return ""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(columns)  # names with commas are quoted
    return f" with --drop{'=' if text.getvalue().startswith('-') else ' '}{shlex.quote(text.getvalue())}"


def _hints(X: Any, names: list[str]) -> list[str]:
    """Return advice about columns that would distort the map."""
    if not isinstance(X, np.ndarray) or len(X) < _SHOWN:
        return []
    for place in (0, X.shape[1] - 1):
        values = X[:, place].astype(np.float64)
        if values[-1] - values[0] == len(X) - 1 and (np.diff(values) == 1).all():
            return [f"The column {names[place]!r} counts the rows. Leave it out{_drop([names[place]])}."]
    return []


def row_names(table: Table) -> dict[str, NDArray[Any]]:
    """Return the column of an output that identifies rows: their names or, if some were left out, their numbers."""
    if table.index is not None:
        return {table.index_name or "name": table.index}
    if len(table.rows) and int(table.rows[-1]) != len(table.rows) - 1:
        return {"row": table.rows}
    return {}


def check_columns(table: Table, label: str | None, made: Iterable[str]) -> None:
    """Raise an error if two columns of an output would have the same name: ``made``, the label or names of rows."""
    parts = [(name, "the names or numbers of the rows") for name in row_names(table)]
    parts += [(name, "a column of the result") for name in made]
    parts += [] if label is None else [(label, "the label")]
    taken: dict[str, str] = {}
    for name, what in parts:
        if name in taken:
            raise TableError(
                f"The output cannot have two columns called {name!r}, {taken[name]} and {what}. Rename the column "
                f"{name!r} of the input."
            )
        taken[name] = what


def check_output(path: Path, extensions: tuple[str, ...] = (), *, force: bool) -> None:
    """Raise an error if a file cannot be written, or exists and ``force`` is False. No ``extensions`` allow any."""
    if extensions and not path.name.lower().endswith(extensions):
        raise TableError(f"{path} must end with one of {', '.join(extensions)}. Choose another name.")
    known = by_extension(path)
    if extensions and known is not None and not FORMATS[known].is_text:
        FORMATS[known].check_packages()
    folder = path.absolute().parent
    if path.is_dir():
        raise TableError(f"{path} is a folder. Pass the name of a file.")
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: the folder {folder} does not exist. Create it first.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"{path} cannot be written: there is no permission to write to {folder}.")
    if os.path.lexists(path) and not force:  # also a symbolic link that leads to no file
        raise TableError(f"{path} exists already. Choose another name, or pass --force to replace it.")


def write(path: Path, columns: Mapping[str, Any], *, force: bool = False) -> None:
    """Write columns to a file whose format follows from its extension. ``force`` replaces an existing file."""
    check_output(path, WRITABLE, force=force)
    write_to = FORMATS[str(by_extension(path))].write
    assert write_to is not None
    with replacing(path) as temporary:
        write_to(temporary, columns)


def with_map(table: Table, model: Any, label: str | None) -> Any:
    """Return an AnnData object with the map: that of the input with everything in it, or a new one of the numbers."""
    import anndata

    from drsne.tl.fitting import write_map
    from drsne.tl.representation import choose

    if table.document is not None:
        adata, chosen = table.document
        if len(table.rows) < adata.n_obs:
            adata = adata[table.rows].copy()
    else:
        adata = anndata.AnnData(table.X)
        if table.columns is not None:
            adata.var_names = table.columns
        if table.index is not None:
            adata.obs_names = [str(each) for each in table.index]
            adata.obs_names.name = table.index_name
        if label is not None and table.label is not None:
            adata.obs[label] = table.label
        chosen = choose(adata, "X", None)
    write_map(adata, model, chosen, None, None)
    return adata
