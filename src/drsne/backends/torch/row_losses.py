"""The losses of new rows in a fixed map and their gradients, for all rows at once (docs/theory.md, section 12).

The formulas are those of :mod:`drsne.backends.numba.kernels.placement`, except that the repulsion is summed over all
points of the map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from drsne.backends.protocol import Limits, Rows, Shared
from drsne.backends.torch import kernels
from drsne.backends.torch.kernels import FUSED
from drsne.backends.torch.segments import dot, row_sums
from drsne.backends.torch.tree import TorchTree

_PAIRS = {"cpu": 2**15, "cuda": 2**25}  # largest number of pairs that plain PyTorch sums at a time; few fit the cache
_TARGETS, _SOURCES = 32, 32  # places in a program, and points of the map that it reads at a time
_PARTS = 32  # largest number of parts of the map, which are summed separately
_ROWS = 2**16  # number of points of the map whose sums are computed at a time
_MANY, _THETA = 2**20, 0.45  # number of points above which their partition sum comes from a tree, and its opening angle


class Field(NamedTuple):
    """The points of a map on a device, in double precision."""

    places: Tensor  # (d, n)
    shrunk: Tensor  # places divided by the stretch, (d, n)
    scales: Tensor  # (n,)
    masses: Tensor  # (n,)
    stretch: float

    def partition(self) -> float:
        """Return the sum of ``m_i m_j w_ij`` over all pairs, or over a tree if there are very many."""
        d, n = self.places.shape
        if n > _MANY and d <= 2:
            tree, Y = TorchTree(), TorchTree.centred(self.shrunk.T)
            found = tree.cells(Y, self.scales, tree.structure(Y, self.scales), "single", {"masses": self.masses})
            potential = tree.sums(found, d, _THETA).potential.to(torch.float64)
            return float(row_sums(self.masses * potential)) / self.stretch**2
        total = 0.0
        for first in range(0, n, _ROWS):
            some = torch.arange(first, min(first + _ROWS, n), device=self.scales.device)
            value, _ = self.at(self.places[:, some].T.contiguous(), self.scales[some], some)
            total += float(row_sums(self.masses[some] * value))
        return total

    def at(self, Y: Tensor, a: Tensor, skipped: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum over the map at places (m, d) of rows with the scales ``a``, and its gradient (m, d).

        ``skipped`` is the point that is left out for each row, or -1.
        """
        y = Y / self.stretch
        compiled = kernels.compiled(y) and y.shape[1] <= 3
        sums = _compiled_sums(self, y, a) if compiled else _plain_sums(self, y, a)
        value, gradient = sums[0], -2.0 * sums[1:].T
        out = skipped.clamp(min=0)
        away = y - self.shrunk[:, out].T
        h = a * self.scales[out]
        q = 1.0 / (h + dot(away, away))
        w = torch.where(skipped >= 0, self.masses[out] * h * q, 0.0)
        base = self.stretch**2
        return (value - w) / base, (gradient + 2.0 * (w * q)[:, None] * away) / (base * self.stretch)


def _compiled_sums(field: Field, y: Tensor, a: Tensor) -> Tensor:
    (m, d), n = y.shape, len(field.scales)
    blocks = -(-n // _SOURCES)
    size = -(-blocks // min(_PARTS, blocks)) * _SOURCES
    parts = -(-n // size)
    sums = torch.empty((parts, 1 + d, m), dtype=torch.float64, device=y.device)
    points = field.shrunk, field.scales, field.masses
    program = kernels.sums.field[(-(-m // _TARGETS), parts)]
    program(y.contiguous(), a, *points, sums, m, n, size, d, _TARGETS, _SOURCES, num_warps=4, **FUSED)
    return row_sums(sums.permute(1, 2, 0))


def _plain_sums(field: Field, y: Tensor, a: Tensor) -> Tensor:
    """Return the sums of ``m_j w`` and of ``m_j w^2 (y - y_j) / h`` over all points j of the map, (1 + d, m)."""
    (m, d), n, most = y.shape, len(field.scales), _PAIRS[y.device.type]
    sums = torch.empty((1 + d, m, -(-n // most)), dtype=y.dtype, device=y.device)
    step = max(1, most // n)
    for first in range(0, m, step):
        some = slice(first, first + step)
        for part in range(sums.shape[2]):
            points = slice(part * most, (part + 1) * most)
            away = [y[some, c, None] - field.shrunk[c, points] for c in range(d)]
            h = a[some, None] * field.scales[points]
            q = 1.0 / (h + _squared(away))
            w = field.masses[points] * h * q
            sums[0, some, part] = row_sums(w)
            w *= q
            for c in range(d):
                sums[1 + c, some, part] = row_sums(w * away[c])
    return row_sums(sums)


def _squared(away: list[Tensor]) -> Tensor:
    total = away[0] * away[0]
    for each in away[1:]:
        total = total + each * each
    return total


def _differences(field: Field, Y: Tensor, near: Tensor) -> list[Tensor]:
    """Return the differences of the places from those of listed points, (m, k) for each dimension."""
    return [Y[:, c, None] - field.places[c][near] for c in range(Y.shape[1])]


def loss(Y: Tensor, rows: Rows, in_map: Tensor | None, shared: Shared, limits: Limits) -> tuple[Tensor, Tensor]:
    """Return the losses of rows at ``Y`` (m, d), and their gradients (m, d).

    ``in_map`` are the density neighbours in the map, or None if they are not yet known.
    """
    field, terms = shared.field, shared.terms
    stretch, delta, repulsion, apart_radius = shared.constants[:4]
    of_data, of_map, of_radii, alpha, floor, smoothing = terms
    value, gradient = field.at(Y, rows.scales, rows.skipped)
    value, gradient = repulsion * value, repulsion * gradient
    away = _differences(field, Y, rows.near)
    square = _squared(away)
    h = rows.scales[:, None] * field.scales[rows.near]
    w = 1.0 / (stretch**2 + square / h)
    pull = 2.0 * rows.affinities * w * (w / (w + delta)) / h
    parts = row_sums(torch.stack([rows.affinities * torch.log(w + delta), *(pull * each for each in away)]))
    value, gradient = value - parts[0], gradient + parts[1:].T
    added = [_radius_loss(away, square, rows, of_radii, limits)]
    for lists, term in ((rows.listed, of_data), (in_map, of_map)):
        if lists is not None and lists.shape[1] and term[0]:
            radius, slope = _mean_distance(field, Y, lists, floor)
            added.append(_profile_loss(radius, slope, rows, term, alpha, smoothing, limits))
    if in_map is not None and in_map.shape[1] and bool((rows.apart > 0.0).any()):
        # The log radius is minus a profile with the exponent 1.
        apart = rows._replace(weights=rows.apart, targets=-float(apart_radius))
        around = _mean_distance(field, Y, in_map, floor)
        added.append(_profile_loss(*around, apart, (1.0, 0.0, 0.0), 1.0, 0.0, limits))
    if rows.anchors.shape[1]:
        off = Y - rows.anchors
        added.append((0.5 * rows.stiffness * dot(off, off), rows.stiffness[:, None] * off))
    for each in added:
        if each is not None:
            value, gradient = value + each[0], gradient + each[1]
    return value, gradient


def _mean_distance(field: Field, Y: Tensor, near: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Return the mean distances to listed points (m,), and their gradients (m, d)."""
    away = _differences(field, Y, near)
    length = torch.sqrt(_squared(away) + floor)
    per = torch.where(length > 0.0, 1.0 / length, 0.0)
    sums = row_sums(torch.stack([length, *(each * per for each in away)])) / near.shape[1]
    return sums[0], sums[1:].T


def _weighted(weight: Tensor, value: Tensor, slope: Tensor, part: Tensor) -> tuple[Tensor, Tensor]:
    """Return a term of the loss and its gradient, both 0 for rows without a weight."""
    counted = weight != 0.0
    return torch.where(counted, value, 0.0), torch.where(counted, slope, 0.0)[:, None] * part


def _profile_loss(
    radius: Tensor, part: Tensor, rows: Rows, term: Any, alpha: float, smoothing: float, limits: Limits
) -> tuple[Tensor, Tensor]:
    """Return half the squared difference of the profile from its target, times a weight, and its gradient."""
    share, added, log_mean = term
    weight = rows.weights * share
    radius = (radius + added).clamp(min=limits.least)
    log = -alpha * torch.log(radius) - log_mean
    damped: Any = 1.0
    if smoothing > 0.0:
        relative = torch.exp(log)
        log = torch.log(relative + smoothing)
        damped = relative / (relative + smoothing)
    e = rows.targets - log
    return _weighted(weight, 0.5 * weight * e * e, weight * e * damped * alpha / radius, part)


def _radius_loss(
    away: list[Tensor], square: Tensor, rows: Rows, term: Any, limits: Limits
) -> tuple[Tensor, Tensor] | None:
    """Return the term of den-SNE and its gradient, or None if there is none."""
    share, mean, spread, rho = term
    if share == 0.0 or not spread > 0.0:
        return None
    weight, m = rows.weights * share, square.shape[1]
    w = 1.0 / (1.0 + square)
    slopes = -2.0 * w * w
    sums = row_sums(torch.stack([w, *(slopes * each for each in away)]))
    total, far = sums[0], m - sums[0]
    apart = far >= limits.coinciding * total
    far = torch.where(apart, far, total)
    z = (torch.log(far / total) - mean) / spread
    slope = -weight * (rows.targets - rho * z) / spread * (-m / (total * far))
    value = -weight * (rows.targets * z - 0.5 * rho * z * z)
    return _weighted(torch.where(apart, weight, 0.0), value, slope, sums[1:].T)
