"""The transpose of a sparse matrix, with sorted rows. Every block of rows knows where its entries go."""

from __future__ import annotations

from drsne.backends.numba.kernels._compile import kernel


@kernel
def count(starts, columns, counts, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write how many entries of every column a block of rows has."""
    for j in range(counts.shape[1]):
        counts[block, j] = 0
    for e in range(starts[lo], starts[hi]):
        counts[block, columns[e]] += 1


@kernel
def first_places(counts, offsets):  # type: ignore[no-untyped-def]
    """Replace the counts by the places of the first entries, and write where the rows of the transpose begin."""
    place = 0
    for j in range(counts.shape[1]):
        offsets[j] = place
        for block in range(counts.shape[0]):
            entries = counts[block, j]
            counts[block, j] = place
            place += entries
    offsets[counts.shape[1]] = place


@kernel
def place(starts, columns, values, places, names, moved, block, lo, hi):  # type: ignore[no-untyped-def]
    """Write the entries of a block of rows to their places; ``values`` may be empty. ``places`` is overwritten."""
    for i in range(lo, hi):
        for e in range(starts[i], starts[i + 1]):
            at = places[block, columns[e]]
            names[at] = i
            if len(values) > 0:
                moved[at] = values[e]
            places[block, columns[e]] = at + 1
