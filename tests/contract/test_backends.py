"""Every backend against the formulas of plain NumPy, and all gradients against numerical differentiation."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from covering import each_pair, for_each
from on_backends import TORCH, OnArrays, backend_of, torch_backend
from problems import (
    DOUBLE,
    numerical_gradient,
    relative_error,
    small_problem,
    some_log_scales,
    some_map,
    with_,
)

from drsne import Adam, Momentum, Phase, Schedule, engines
from drsne.backends import PairList
from drsne.backends.arrays import host
from drsne.backends.choice import KINDS
from drsne.backends.numpy import NumpyBackend
from drsne.optimize.loop import minimize
from drsne.terms.profile import Smoothing, loss_and_slope, profile

BACKENDS = ["numba", *(["torch"] if TORCH else [])]  # those that are compared with NumPy's
WAYS = [*((name, "as usual") for name in BACKENDS), ("numba", "always compiled")]
DIMENSIONS = (1, 2, 3, 4)
REFERENCE = NumpyBackend()
N = 60


def pair_list(rng, n=N, k=9):
    columns = np.sort(np.stack([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)]), axis=1)
    return PairList(np.arange(0, n * k + 1, k), columns.ravel().astype(np.int32), rng.uniform(0.1, 1.0, n * k))


def neighbors(rng, n=N, k=7):
    return np.stack([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)]).astype(np.int32)


def close(a, b, tolerance=1e-10):
    """Compare two results: None, numbers, arrays, or several of these."""
    if isinstance(a, (list, tuple)):
        for one, other in zip(a, b, strict=True):
            close(one, other, tolerance)
    elif a is None or b is None:
        assert a is b
    else:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def agree(backend, name, *arguments, changed=(), tolerance=1e-10, **options):
    """Call a method that may change its last arguments, compare the results with those of NumPy, and return them."""
    results = []
    for each in (backend, REFERENCE):
        written = [value.copy() for value in changed]
        results.append([getattr(each, name)(*arguments, *written, **options), written])
    close(*results, tolerance)
    return results[0][0]


@pytest.fixture
def whole_backend(request, few):
    """A backend as an optimisation uses it."""
    return backend_of(request.param)


@pytest.fixture
def backend(request, few):
    """A backend that is called with NumPy arrays."""
    found = backend_of(request.param)
    return OnArrays(found) if request.param == "torch" else found


def on_backends(fixture="backend", **lists):
    """Return a decorator that runs a test once on every backend, with few cases of the values of its parameters."""
    return for_each(f"{fixture}, few", WAYS, lists, indirect=[fixture, "few"])


def implementations():
    """Return the parts of the protocol with what implements them."""
    from drsne.backends import protocol
    from drsne.backends.numba.backend import NumbaBackend
    from drsne.backends.numba.cells import NumbaTree
    from drsne.backends.numba.placement import NumbaPlacer
    from drsne.metrics import _on_processor

    yield from ((protocol.Backend, made) for made in (NumpyBackend, NumbaBackend))
    yield from ((protocol.Tree, NumbaTree), (protocol.Placer, NumbaPlacer), (protocol.Comparisons, _on_processor))
    if TORCH:
        from drsne.backends.torch.backend import TorchBackend
        from drsne.backends.torch.placement import TorchPlacer
        from drsne.backends.torch.tree import TorchTree

        yield from ((protocol.DeviceBackend, TorchBackend), (protocol.Backend, TorchBackend))
        yield from ((protocol.Tree, TorchTree), (protocol.Placer, TorchPlacer))
        yield protocol.Comparisons, TorchBackend.comparisons


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.name != "self" and not each.name.startswith("_")]


def test_every_part_of_a_backend_has_what_the_protocol_declares():
    for declared, made in implementations():
        methods = {name: each for name, each in vars(declared).items() if inspect.isfunction(each) and name[0] != "_"}
        assert methods
        for name, method in methods.items():
            if name == "divided_again" and not made.MOST_AGE:
                continue
            found = parameters(getattr(made, name))
            assert set(parameters(method)) <= set(found) or "settings" in found, (made, name)


def test_only_backends_are_compared_by_name():
    """What a backend supports is an attribute of its kind, and ``choice`` makes it."""
    package = Path(engines.__file__).parents[1]
    for path in package.rglob("*.py"):
        if package / "backends" not in path.parents:
            compared = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Compare)]
            texts = [ast.unparse(side) for node in compared for side in (node.left, *node.comparators)]
            assert not [text for text in texts if re.match(rf"[\[({{]?'({'|'.join(KINDS)})'", text)], path


@on_backends(d=DIMENSIONS, delta=[0.0, 0.01], adaptive=[False, True])
def test_attraction_and_energy(backend, d, delta, adaptive):
    Y, listed = some_map(N, d), pair_list(np.random.default_rng(0))
    inverse = np.exp(-some_log_scales(N)) if adaptive else None
    for name in ("attraction", "energy"):
        agree(backend, name, Y, listed, 1.1, delta, inverse)


@on_backends(d=DIMENSIONS, adaptive=[False, True])
def test_repulsion(backend, d, adaptive):
    scales = np.exp(some_log_scales(N)) if adaptive else None
    agree(backend, "repulsion", some_map(N, d), smoothing=0.1, scales=scales, precision="double")


@on_backends(d=[1, 2, 3], adaptive=[False, True], precision=["double", "single"])
def test_repulsion_of_some_points(backend, d, adaptive, precision):
    Y, scales = some_map(N, d), np.exp(some_log_scales(N)) if adaptive else None
    points = np.random.default_rng(0).permutation(N).astype(np.int32)[::3]  # not contiguous in memory
    tolerance = 1e-10 if precision == "double" else 1e-5
    agree(backend, "sampled_repulsion", Y, points, scales=scales, precision=precision, tolerance=tolerance)


@on_backends(d=DIMENSIONS, floor=[0.0, 0.3])
def test_lengths_and_their_adjoint(backend, d, floor):
    rng = np.random.default_rng(1)
    Y, slope, near = some_map(N, d), rng.normal(size=N), neighbors(rng)
    Y[7] = Y[3]  # points that coincide have no direction
    near[7, 0] = 3
    found, expected = ([np.empty(N), np.empty((N, d)), np.empty((N, d))] for _ in range(2))
    for each, out in ((backend, found), (REFERENCE, expected)):
        listed = each.neighbor_list(near)
        each.lengths(Y, listed.neighbors, floor, out[0], out[1])
        each.pull_back(Y, listed, slope, floor, out[2])
    close(found, expected)


@on_backends(shares=[1, 3])
def test_forces_are_added(backend, shares):
    rng = np.random.default_rng(2)
    slope, directions, back, forces = (rng.normal(size=s) for s in (N, (shares, N, 2), (shares, N, 2), (N, 2)))
    agree(backend, "add_forces", slope, directions, back, changed=[forces])


@on_backends(n=[N, 50_000], exponent=[1.0, 2.5], attached=[True, False])
def test_slope_of_a_profile(backend, n, exponent, attached):
    rng = np.random.default_rng(5)
    radii, target = np.exp(rng.normal(size=n)), rng.normal(size=n)
    radii[3] = 0.0
    settings, smoothing = {"exponent": exponent, "attached": attached}, Smoothing(relative=0.0, length=0.01)
    found = agree(backend, "profile_slope", radii, target, added=0.01, **settings)
    close(found, loss_and_slope(target, profile(radii, exponent, smoothing), exponent, smoothing, attached=attached))


@on_backends()
def test_who_lists_whom(backend):
    near = neighbors(np.random.default_rng(3))
    found = agree(backend, "neighbor_list", near)
    for i in (0, 17):
        listed = found.listed_by[found.offsets[i] : found.offsets[i + 1]]
        assert listed.tolist() == [j for j in range(N) if i in near[j]]


@on_backends(d=DIMENSIONS)
def test_sums_of_the_kernel_and_their_forces(backend, d):
    rng = np.random.default_rng(4)
    Y, listed, pull = some_map(N, d), pair_list(rng), rng.normal(size=N)
    agree(backend, "kernel_sums", Y, listed)
    agree(backend, "add_kernel_forces", Y, listed, pull, changed=[np.ones((N, d))])
    agree(backend, "nearest_in_map", Y, 8)


@on_backends(n=[N, 9000], units=[False, True], d=DIMENSIONS)
def test_steps(backend, n, units, d):
    rng = np.random.default_rng(6)
    gradient, first, gains = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.uniform(0.5, 2.0, (n, d))
    unit, state = rng.uniform(0.5, 2.0, n) if units else None, [first, gains]
    momentum = {"rate": 0.3, "momentum": 0.8, "grow_from_rest": False, "units": unit}
    for least in (None, 0.01):
        agree(backend, "momentum_step", gradient, changed=state, min_gain=least, **momentum)
    adam = {"rate": 0.3, "betas": (0.9, 0.99), "eps": 1e-8, "n_steps": 3, "units": unit}
    agree(backend, "adam_step", gradient, changed=state, **adam)


@on_backends(n=[N, 9000], longest=[None, 1.0], center=[False, True], units=[False, True])
def test_a_moved_map(backend, n, longest, center, units):
    rng = np.random.default_rng(7)
    Y, step, unit = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, n) if units else None
    options = {"units": unit, "longest": longest, "center": center}
    moved = agree(backend, "moved", Y, step, **options)
    assert not center or np.abs(moved.mean(axis=0)).max() < 1e-12
    if longest is not None and not center and not units:
        assert np.linalg.norm(moved - Y, axis=1).max() <= longest * (1 + 1e-12)
    for wrong in (np.nan, np.inf):
        step[3, 1] = wrong
        with np.errstate(invalid="ignore"):  # as in the loop of an optimisation
            assert backend.moved(Y, step, **options) is None
    A, F = rng.normal(size=(2, n, 2))
    close(backend.combined(A.copy(), F.copy(), 3.0, 0.5, 7.0), 7.0 * (3.0 * A - 0.5 * F))


@pytest.mark.parametrize("name", [*BACKENDS, "numpy"])
def test_an_order_changes_names_and_not_values(name):
    rng = np.random.default_rng(5)
    Y, listed, near = some_map(N), pair_list(rng), neighbors(rng)
    if name == "torch":
        found = torch_backend()
        order = OnArrays(found.order(found.received(Y)))
        order._backend.received = found.received
    else:
        order = backend_of(name).order(Y)
    np.testing.assert_array_equal(order.restored(order.reordered(Y)), Y)
    old = order.reordered(np.arange(N))  # the number that each row has in the data
    assert sorted(old.tolist()) == list(range(N))
    np.testing.assert_array_equal(old[order.neighbor_table(near)], near[old])
    moved = order.pair_list(listed)
    for row in (0, 31):
        there, here = slice(*moved.indptr[row : row + 2]), slice(*listed.indptr[old[row] : old[row] + 2])
        np.testing.assert_array_equal(old[moved.columns[there]], listed.columns[here])
        np.testing.assert_array_equal(moved.values[there], listed.values[here])


@each_pair(
    {
        "name, d": [*(("numpy", d) for d in DIMENSIONS), *((name, 2) for name in BACKENDS)],
        "adaptive": [False, True],
        "weights": [(1.0, 0.0), (0.7, 1.6)],
    }
)
def test_the_gradient_is_that_of_the_loss(name, d, adaptive, weights):
    """In double precision, for the sums over all pairs."""
    objective = with_(DOUBLE, affinity_smoothing=1e-3, input_weight=weights[0], embedding_weight=weights[1])
    scales, on = some_log_scales() if adaptive else None, backend_of(name)
    problem, Y = small_problem(objective, backend=on, log_scales=scales), some_map(d=d)

    def loss(Z):
        at = problem.evaluate(on.received(Z), losses=True)
        return at.losses["kl"] + problem.loss.terms[0].weight * at.losses["concentration"]

    gradient = host(problem.evaluate(on.received(Y)).gradient) / len(Y)
    assert relative_error(gradient, numerical_gradient(loss, Y)) < 1e-6


@on_backends("whole_backend", adaptive=[False, True])
def test_an_optimisation_is_the_same_on_every_backend(whole_backend, adaptive):
    """The loop, the schedule and the objective are the same code, so that maps differ by rounding alone."""
    objective = with_(DOUBLE, embedding_weight=0.7)
    scales = some_log_scales() if adaptive else None
    phases = (
        Phase(n_iter=15, optimizer=Momentum(rate=0.3), exaggeration=4.0, max_step=0.5),
        Phase(n_iter=15, optimizer=Adam(rate=0.1), density=True, ramp=5),
    )
    found = [
        minimize(
            small_problem(objective, backend=each, log_scales=scales), some_map(scale=0.1), Schedule(phases=phases)
        )
        for each in (whole_backend, REFERENCE)
    ]
    np.testing.assert_allclose(found[0].embedding, found[1].embedding, rtol=1e-7, atol=1e-8)
    assert found[0].losses["kl"] == pytest.approx(found[1].losses["kl"], rel=1e-9)
