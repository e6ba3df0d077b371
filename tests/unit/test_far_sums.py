"""The order of the expansions by which a tree sums over groups of points that are far away (eqs. 36 and 53)."""

from __future__ import annotations

import numpy as np
import pytest
from on_backends import DEVICE, TORCH
from scipy.spatial.distance import cdist

from drsne.backends.numba.cells import NumbaTree, field_tree
from drsne.backends.numba.kernels import placement
from drsne.backends.numba.threads import Workers

N = 32  # points of a group, which is the size of a leaf of the tree of PyTorch
THETA = 0.25


def two_groups(size, d, adaptive, n_targets):
    """Return points, scales and masses of two groups at a fixed distance, of which the second is symmetric.

    Its third moments are zero, so all errors of an expansion up to these are of fourth order in ``size``. Scales are
    correlated with places, as they are in maps.
    """
    rng = np.random.default_rng(0)
    first, half = rng.uniform(-1.0, 1.0, (n_targets, d)), rng.uniform(-1.0, 1.0, (N // 2, d))
    offsets = np.vstack([first, half, -half])
    centres = np.where(np.arange(len(offsets)) < n_targets, 0.0, 14.0)[:, None] * (1.0 + 0.1 * np.arange(d))
    scales = 1.5 + 0.8 * size * offsets.mean(axis=1) if adaptive else np.ones(len(offsets))
    masses = rng.uniform(0.5, 2.0, len(offsets))
    masses[-N // 2 :] = masses[-N : -N // 2]
    return centres + size * offsets, scales, masses


def direct(Y, scales, masses):
    """Return the potential of every point and the force on it, summed over all pairs."""
    h = scales[:, None] * scales
    W = h / (h + cdist(Y, Y) ** 2)
    np.fill_diagonal(W, 0.0)
    V = W**2 / h * masses
    return (W * masses).sum(axis=1), Y * V.sum(axis=1)[:, None] - V @ Y


def of_numba(Y, scales, masses):
    with Workers(1) as workers:
        tree = NumbaTree(workers)
        found = tree.cells(Y, scales, tree.structure(Y, scales), "double", {})
        sums = tree.sums(found, Y.shape[1], THETA)
    return sums.potential, sums.forces


def of_torch(Y, scales, masses):
    import torch

    from drsne.backends.torch.tree import TorchTree

    Y, scales = (None if each is None else torch.as_tensor(each, device=DEVICE) for each in (Y, scales))
    found = TorchTree.cells(Y, scales, TorchTree.structure(Y, scales), "double", {})
    sums = TorchTree.sums(found, Y.shape[1], THETA)
    return sums.potential.cpu().numpy(), sums.forces.cpu().numpy()


def of_the_map_for_new_rows(Y, scales, masses):
    potential, forces = np.empty(len(Y)), np.empty_like(Y)
    with Workers(1) as workers:
        fixed = Y, Y, scales, masses
        tree = field_tree(fixed, workers, THETA)
        workers.run(placement.potentials, len(Y), fixed, tree, 1.0, potential, forces)
    return potential / masses, forces / masses[:, None]


# Kernels that expand a field around the centre of a leaf are tested with a leaf, the others with one point.
CASES = [(of_numba, 1, False, 1), (of_numba, 2, False, 1), (of_numba, 3, False, 1)]
CASES += [(of_numba, 1, True, 1), (of_numba, 2, True, N), (of_numba, 3, True, 1)]
CASES += [(of_the_map_for_new_rows, d, True, 1) for d in (1, 2, 3)]
CASES += [(of_torch, d, adaptive, N) for d in (1, 2) for adaptive in (False, True)] * TORCH


@pytest.mark.parametrize(("sums", "d", "adaptive", "n_targets"), CASES)
def test_errors_of_far_sums_are_of_the_order_that_the_expansion_leaves_out(sums, d, adaptive, n_targets):
    """If the groups are half as large, errors of potentials are 16 times smaller, and those of forces at least 8 times.

    With a wrong term of third order, these are 8 and 4 times, and with one of second order 4 and 2 times.
    """
    errors = []
    for size in (1.0, 0.5):
        Y, scales, masses = two_groups(size, d, adaptive, n_targets)
        expected = direct(Y, scales, masses if sums is of_the_map_for_new_rows else np.ones(len(Y)))
        found = sums(Y, scales if adaptive else None, masses)
        errors.append([np.linalg.norm((a - b)[:n_targets]) for a, b in zip(found, expected, strict=True)])
    potential, forces = np.divide(*errors)
    assert potential > 12.0
    assert forces > 6.0
