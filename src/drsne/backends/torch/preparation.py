"""What a fit computes once, on a device: affinities from neighbours, and the principal components of the data."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from drsne.backends import PairList
from drsne.backends.torch.segments import starts

_TINY, _SAME, _BEYOND, _LEAST = 2.3e-308, 2.0**-48, 1e60, 1e-140  # those of the kernel for the CPU
_STEPS, _LATE, _CONVERGED = 100, 12, 1e-10
_ENTRIES = 2**24  # largest number of affinities that are calibrated at a time
_SORTED = 2**27  # largest number of pairs that are sorted at a time


def calibrated(distances: Tensor, perplexity: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the rows ``p_{j|i}`` (n, k), precisions, perplexities, and the rows that must be calibrated otherwise.

    These are rows with many ties or very distant neighbours, for which the values are not defined. The search is the
    same as in :mod:`drsne.affinities`.
    """
    n, k = distances.shape
    P = torch.empty((n, k), dtype=torch.float32, device=distances.device)
    precisions, reached = (torch.empty(n, dtype=torch.float64, device=distances.device) for _ in range(2))
    usual = torch.empty(n, dtype=torch.bool, device=distances.device)
    step = max(1, _ENTRIES // k)
    for lo in range(0, n, step):
        rows = slice(lo, lo + step)
        P[rows], precisions[rows], reached[rows], usual[rows] = _calibrated(distances[rows].double(), perplexity)
    return P, precisions, reached, torch.nonzero(~usual)[:, 0]


def _calibrated(distances: Tensor, perplexity: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    k = distances.shape[1]
    reach = min(k - 1, math.ceil(perplexity))
    near, largest = distances[:, :1], distances[:, -1:].clamp(min=_TINY)
    ratios = distances / largest
    spread = (ratios[:, -1:] - ratios[:, :1]) * (ratios[:, -1:] + ratios[:, :1])
    D = ((ratios - ratios[:, :1]) * (ratios + ratios[:, :1]) / spread).float().double()
    tied = (distances <= near + _SAME * near) | ~(D >= _LEAST)
    usual = (tied.sum(dim=1) < perplexity) & (perplexity < k) & (distances[:, -1] <= _BEYOND * distances[:, reach])
    D = torch.where(tied, 0.0, D)
    beta = 1.0 / D.mean(dim=1)
    low, high = torch.zeros_like(beta), torch.full_like(beta, torch.inf)
    left = usual.clone()
    e, s, entropy = D, beta, beta
    for turn in range(_STEPS):
        e = torch.exp(-beta[:, None] * D)
        s = e.sum(dim=1)
        first, second = (e * D).sum(dim=1) / s, (e * D * D).sum(dim=1) / s
        entropy = torch.log(s) + beta * first
        gap = entropy - math.log(perplexity)
        left &= ~(gap.abs() < _CONVERGED)
        if not bool(left.any()):
            break
        low, high = torch.where(gap > 0.0, beta, low), torch.where(gap > 0.0, high, beta)
        slope = beta * beta * (second - first * first)
        new = beta * torch.exp((gap / slope.clamp(min=1e-300)).clamp(-3.0, 3.0))
        outside = (new <= low) | (new >= high) | (turn >= _LATE and turn % 2 == 1)
        new = torch.where(outside, torch.where(torch.isinf(high), 2.0 * beta, 0.5 * (low + high)), new)
        beta = torch.where(left, new, beta)
    unit = (largest * torch.sqrt(spread))[:, 0]
    return (e / s[:, None]).float(), beta / unit / unit, torch.exp(entropy), usual & ~left


def symmetrized(indices: Tensor, conditional: Tensor) -> PairList:
    """Return ``(C + C^T) / (2 n)`` as the rows of a sparse matrix, where ``C[i, indices[i]] = conditional[i]``."""
    n, k = indices.shape
    device = indices.device
    column, by_column = torch.sort(indices.reshape(-1), stable=True)
    first = torch.searchsorted(column, torch.arange(n + 1, device=device, dtype=column.dtype))
    del column
    parts_of_columns, parts_of_values, sizes = [], [], []
    mean = max(1, 2 * k)
    step = max(1, _SORTED // mean)
    for lo in range(0, n, step):
        hi = min(n, lo + step)
        begin, end = int(first[lo]), int(first[hi])
        back = by_column[begin:end]
        own = torch.arange(lo, hi, device=device)
        row = torch.cat((own.repeat_interleave(k), own.repeat_interleave(first[lo : hi + 1].diff())))
        other = torch.cat((indices[lo:hi].reshape(-1).to(torch.int64), back // k))
        value = torch.cat((conditional[lo:hi].reshape(-1), conditional.reshape(-1)[back]))
        key, by_key = torch.sort((row - lo) * n + other, stable=True)
        value = value[by_key].double()
        key, counts = torch.unique_consecutive(key, return_counts=True)
        # A pair has one or two entries, so its sum is that of its first and, if there is one, its last entry.
        last = counts.cumsum(0) - 1
        summed = value[last - counts + 1] + torch.where(counts > 1, value[last], 0.0)
        parts_of_values.append((summed * (0.5 / n)).to(conditional.dtype))
        parts_of_columns.append((key % n).to(torch.int32))
        sizes.append(torch.bincount(key // n, minlength=hi - lo))
    return PairList(starts(torch.cat(sizes)), torch.cat(parts_of_columns), torch.cat(parts_of_values))


def components(X: Tensor, count: int) -> Tensor:
    """Return the scores (n, count) of the leading principal components of rows with the mean 0.

    The largest loadings are positive.
    """
    vectors = torch.linalg.eigh(X.T @ X).eigenvectors.flip(dims=(1,))[:, :count]
    largest = vectors.abs().argmax(dim=0)
    signs = torch.where(vectors.gather(0, largest[None])[0] < 0, -1.0, 1.0)
    scores: Tensor = X @ (vectors * signs)
    return scores
