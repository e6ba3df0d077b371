"""Training rows in tiles, with which new rows are compared.

The rows are divided into lists, and the rows of a list into tiles. A tile contains its values column by column, so that
a new row is compared with all rows of a tile at once. The columns with the largest variance come first, so that few
columns suffice to tell that most tiles contain no near row. ``kernels/lists.py`` compares the rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drsne.neighbors.inverted_file import Lists

WIDTH = 128  # number of rows of a tile
_SAMPLE = 256  # largest number of rows from which the column is chosen along which rows are divided
_STEP = 64  # number of tiles that are filled at once
_ROUNDING = 1.0 + 1e-6  # more than the rounding errors of a radius that is computed in single precision


class Tiles(NamedTuple):
    """Lists of training rows, in tiles."""

    tiles: NDArray[np.float32]  # differences of the rows from the centres of their lists, (tiles, d, WIDTH)
    order: NDArray[np.int32]  # the number of the row in each place of the tiles, (tiles * WIDTH,)
    first: NDArray[np.int64]  # the first tile of each list, (lists + 1,)
    centres: NDArray[np.float32]  # (lists, d)
    radii: NDArray[np.float64]  # no row of a list is farther from its centre, (lists,)
    columns: NDArray[np.intp]  # the columns of the data in the order of these arrays, (d,)

    @classmethod
    def halved(cls, Z: NDArray[np.float64]) -> Tiles:
        """Return the tiles of rows that are divided in halves until each list has one tile."""
        order = _halves(Z)
        first = np.append(np.arange(0, len(Z), WIDTH), len(Z))
        centres = np.stack([Z[order[lo:hi]].mean(axis=0) for lo, hi in pairwise(first)])
        return cls._filled(Z, order, first, centres.astype(np.float32))

    @classmethod
    def of(cls, Z: NDArray[np.float64], lists: Lists) -> Tiles:
        """Return the tiles of the lists of an inverted file."""
        return cls._filled(Z, lists.order, lists.first, lists.centres)

    @classmethod
    def _filled(
        cls, Z: NDArray[np.float64], order: NDArray[np.int32], first: NDArray[np.int64], centres: NDArray[np.float32]
    ) -> Tiles:
        """Return the tiles of rows that are sorted by list; the list c has the rows first[c] to first[c + 1]."""
        sizes = np.diff(first)
        tile = np.append(0, np.cumsum(-(-sizes // WIDTH)))
        columns = np.argsort(-np.einsum("ij,ij->j", Z, Z), kind="stable")
        tiles = np.empty((tile[-1], Z.shape[1], WIDTH), np.float32)
        row = np.full(tile[-1] * WIDTH, -1, np.int32)  # -1 is a place without a row
        row[np.repeat(tile[:-1] * WIDTH - first[:-1], sizes) + np.arange(len(Z))] = order
        owner = np.repeat(np.arange(len(sizes)), np.diff(tile))
        radii = np.zeros(len(sizes))
        for start in range(0, len(tiles), _STEP):
            some = slice(start, start + _STEP)
            names, centre = row[start * WIDTH : (start + _STEP) * WIDTH].reshape(-1, WIDTH), centres[owner[some]]
            residual = (Z[names] - centre[:, None])[:, :, columns].astype(np.float32)
            squares = np.einsum("tij,tij->ti", residual, residual, dtype=np.float64)
            np.maximum.at(radii, owner[some], np.sqrt(np.where(names >= 0, squares, 0.0).max(axis=1)))
            residual[names < 0] = np.inf
            tiles[some] = residual.transpose(0, 2, 1)
        return cls(tiles, row, tile, np.ascontiguousarray(centres[:, columns]), radii * _ROUNDING, columns)


def _halves(Z: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return an order of the rows in which the rows of a tile are near each other.

    A part is divided along its widest column, into two parts that are full tiles.
    """
    order = np.arange(len(Z), dtype=np.int32)
    parts = [(0, len(Z))]
    while parts:
        lo, hi = parts.pop()
        if hi - lo <= WIDTH:
            continue
        rows = order[lo:hi]
        widest = int(Z[rows[:: -(-len(rows) // _SAMPLE)]].var(axis=0).argmax())
        middle = -(-len(rows) // WIDTH) // 2 * WIDTH
        order[lo:hi] = rows[np.argpartition(Z[rows, widest], middle)]
        parts += [(lo, lo + middle), (lo + middle, hi)]
    return order
