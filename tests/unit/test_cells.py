"""Cells of a map: summaries that are sums over their points, also those of large nodes."""

from __future__ import annotations

import numpy as np
from covering import each_value

from drsne.backends.numba.cells import scaled_cells, scaled_structure, scales_along
from drsne.backends.numba.threads import Workers


@each_value({"d": [1, 2, 3], "n": [500, 40_000]})
def test_summaries_of_nodes(n, d):
    rng = np.random.default_rng(0)
    Y, scales = rng.normal(size=(n, d)) * 5, np.exp(0.5 * rng.normal(size=n))
    Y[: n // 3] = 1.0  # duplicates, which share a leaf
    with Workers(3) as workers:
        at = scaled_structure(Y, scales, workers, 40)
        found = scaled_cells(Y, scales_along(scales, np.float64, workers, at), workers, at)
    places = np.zeros((n, 3))
    places[:, :d] = Y
    points = np.column_stack((places, scales))[at.order]
    first, last = at.nodes[:2]
    for v in [0, 1, 2, *range(0, len(first), 97)]:
        inside = points[first[v] : last[v]]
        away = inside - inside.mean(axis=0)
        products = away.T @ away
        expected = [
            *inside.mean(axis=0),
            *np.diag(products)[:3],
            products[0, 1], products[0, 2], products[1, 2],
            *products[:3, 3], products[3, 3],
            np.ptp(inside[:, :3], axis=0).max(), np.ptp(inside[:, 3]),
            *np.maximum(away[:, :3].max(axis=0), -away[:, :3].min(axis=0)),
            len(inside),
        ]  # fmt: skip
        np.testing.assert_allclose(found.summed[:, v], expected, rtol=1e-9, atol=1e-7)
