"""Tables in files: reading the data of users, and writing maps.

:func:`read` returns a :class:`Table` of numbers with everything else that the file says about its rows. :func:`write`
writes columns. There is one format in each file: ``tables/<name>.py`` exposes ``FORMAT``. Every error is one sentence
that says what is wrong, where, and what to do.
"""

from drsne.tables._formats import FORMATS, Source, TableError, format_of
from drsne.tables._reading import read, read_content
from drsne.tables._table import Table, column_of
from drsne.tables._writing import check_columns, check_output, row_names, write

__all__ = [
    "FORMATS",
    "Source",
    "Table",
    "TableError",
    "check_columns",
    "check_output",
    "column_of",
    "format_of",
    "read",
    "read_content",
    "row_names",
    "write",
]
