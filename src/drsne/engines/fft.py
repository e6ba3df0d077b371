"""Repulsion on a mesh for 1-D and 2-D maps, in O(n + M log M) for a map that covers M mesh nodes.

Every point has the same charge, and two transforms give the potential ``U_i = sum_j w_ij``. Its sum is the partition
sum, and its derivative gives the forces, ``F_i = -1/2 dU_i/dy_i`` (docs/theory.md, eqs. 30 to 34). If points are
sparse, the kernel is split: its smooth far part is computed on a coarser mesh, and the rest is summed over near pairs.
If a mesh is not suitable, because the map is much smaller than the kernel or so large that the mesh would take too
long, the tree engine is used.

Every evaluation chooses the cheapest of these three methods by measured costs. From time to time, and if the map has
changed so much that the error may have grown, the forces on some points are also summed over all pairs. A method with
too large an error at these points is ruled out until the next check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from drsne import checks
from drsne.backends import Kind
from drsne.backends.numba.backend import NumbaBackend
from drsne.backends.numba.kernels import mesh as kernels
from drsne.backends.numba.threads import Workers, n_blocks
from drsne.engines import tree
from drsne.engines._check import MARGIN, Indicators, Prediction, Sample, interval

Array = NDArray[np.float64]
Single = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The settings for one level of accuracy (chosen in a study, benchmarks/results/engine_settings.md)."""

    spacing: float  # distance between nodes without a split
    split_spacing: float  # distance between nodes with a split
    radius: float  # radius of the split, within which pairs are summed one by one
    least_near_pairs: float  # number of near pairs per point below which only the split is accurate
    theta: float  # theta of the tree
    force: float  # allowed relative error of the forces


ACCURACIES = {
    "normal": Accuracy(spacing=1 / 3, split_spacing=1.0, radius=3.0, least_near_pairs=40.0, theta=0.45, force=1.5e-2),
    "high": Accuracy(spacing=0.15, split_spacing=0.8, radius=4.0, least_near_pairs=80.0, theta=0.25, force=1e-3),
}
# Costs, measured in the same study. The unit is the time of one node in a transform, per doubling of the mesh.
PAIR_COST = 2.0  # cost of a near pair
TREE_COST = 160.0  # cost of a point in the tree, per doubling of n, at theta = 0.45; proportional to 1 / theta^2
SMALLEST_SPAN = 2.0  # smallest span of a map on a mesh; in smaller maps, forces are small differences of large numbers
LARGEST_MESH = 2**24  # largest number of nodes of a mesh, including the padding
LEAST_PARTITION = 0.05  # smallest partition sum per point; below it, single precision loses the far pairs
_MARGIN = 3  # number of nodes around the map, so that every point has four nodes along each axis
_LEAST_EXTENT = 12.0  # smallest extent of a mesh along an axis; its padding must hold the kernel
_SPARE = 1.2  # factor by which a mesh may be larger than necessary if its transform is already known
_LINES = 32  # number of lines of a transform in a block, and smallest number of mesh rows in a block
_LIGHT = 8192  # smallest number of points in a block if there is little work for each point
_THIN = 1.0  # span along one axis below which a map counts as flat
_REACH = 2  # how many cells away to search for near pairs; the side of a cell is half the radius of the split
_UNCHECKED_RULED_OUT = 10  # number of evaluations until the next check if a method is ruled out


class _Mesh(NamedTuple):
    """A mesh over a map."""

    spacing: float
    nodes: tuple[int, int]  # number of nodes over the map
    padded: tuple[int, int]  # number of nodes with padding, at least twice as many, so that nothing wraps around
    radius: float  # radius of the split, or 0

    @property
    def cost(self) -> float:
        size = self.padded[0] * self.padded[1]
        return size * float(np.log2(size))


@dataclass
class FFTState:
    """The state of an optimisation: transforms of the last meshes, and the results of the last checks."""

    tree: tree.TreeState = field(default_factory=tree.TreeState)
    transforms: dict[_Mesh, Single] = field(default_factory=dict)
    used: str = ""  # the method of the last evaluation: "mesh", "split" or "tree"
    unchecked: int = 0  # number of evaluations until the next check
    ruled_out: set[str] = field(default_factory=set)
    predictions: dict[str, Prediction] = field(
        default_factory=lambda: {method: Prediction() for method in ("mesh", "split")}
    )


class FFTEngine:
    """The repulsion summed on a mesh.

    The ``accuracy`` determines the allowed relative errors of the forces (norm over all points) and of the partition
    sum: 1.5e-2 and 5e-4 for "normal", 1e-3 and 1e-4 for "high". ``precision`` is that of the tree. The mesh always uses
    single precision, because rounding errors are much smaller than the errors of the mesh itself.
    """

    OPTIONS = ("accuracy",)
    tolerance = (1.5e-2, 5e-4)
    adaptive = True

    def __init__(self, backend: NumbaBackend, *, precision: str = "single", accuracy: str = "normal") -> None:
        self._backend, self._workers, self._precision = backend, backend.workers, precision
        self._accuracy = ACCURACIES[accuracy]
        self._tree = tree.TreeEngine(backend, precision=precision, theta=self._accuracy.theta)

    @staticmethod
    def supports(n_components: int, kind: Kind) -> bool:
        """Return whether maps can have this number of dimensions: one or two, with NumPy arrays."""
        return n_components in (1, 2) and kind.numpy_arrays

    @staticmethod
    def check_options(options: dict[str, Any]) -> None:
        """Raise an error for an unknown accuracy."""
        if "accuracy" in options:
            checks.choice("engine_options['accuracy']", options["accuracy"], tuple(ACCURACIES))

    start = staticmethod(FFTState)

    def repulsion(
        self, Y: Array, smoothing: float, scales: Array | None = None, state: FFTState | None = None
    ) -> tuple[float, Array]:
        """Return the partition sum and the forces of a map.

        With ``scales``, only the tree is used, because a mesh would have to resolve the smallest scale everywhere.
        """
        state = FFTState() if state is None else state
        if scales is not None:
            state.used = "tree"
            return self._tree.repulsion(Y, smoothing, scales, state.tree)
        base, d = 1.0 + smoothing, Y.shape[1]
        flat = Y if d == 2 else np.concatenate((Y, np.zeros_like(Y)), axis=1)
        if not smoothing:
            Z, F = self._unit(flat, state)
            return Z, F[:, :d]
        # 1 / (base + s) = 1 / base x 1 / (1 + s / base)
        Z, F = self._unit(flat / np.sqrt(base), state)
        return Z / base, F[:, :d] / base**1.5

    def _unit(self, Y: Array, state: FFTState) -> tuple[float, Array]:
        bounds = np.empty((n_blocks(len(Y), _LIGHT), 4))
        self._workers.run(kernels.bounds, len(Y), Y, bounds, grain=_LIGHT)
        low = bounds[:, :2].min(axis=0)
        span = bounds[:, 2:].max(axis=0) - low
        with np.errstate(all="ignore"):
            fits = np.isfinite(span).all() and span.max() >= SMALLEST_SPAN
            split = self._mesh(span, state, split=True) if fits else None
        if split is None or split.padded[0] * split.padded[1] > LARGEST_MESH:
            return self._by_tree(Y, state)
        cells = _Cells.of(Y, low, span, self._accuracy.radius / _REACH, self._workers)
        checked = state.unchecked == 0
        if checked:
            state.ruled_out = set()
            state.unchecked = interval(len(Y))
        state.unchecked -= 1
        sample = None
        while (mesh := self._cheapest(len(Y), span, split, cells, state)) is not None:
            Z, F = self._by_mesh(Y, low, mesh, cells, state)
            if LEAST_PARTITION * len(Y) > Z:
                break
            allowed, indicators = MARGIN * self._accuracy.force, Indicators.of(Z, F)
            prediction = state.predictions[state.used]
            if not checked and prediction.at(indicators) <= allowed:
                return Z, F
            sample = sample or Sample.of(Y, cells.order, self._precision, self._backend)
            error = sample.force_error(F)
            prediction.learn(error, indicators)
            if error <= allowed:
                return Z, F
            state.ruled_out.add(state.used)
            state.unchecked = _UNCHECKED_RULED_OUT
        return self._by_tree(Y, state)

    def _by_tree(self, Y: Array, state: FFTState) -> tuple[float, Array]:
        state.used = "tree"
        return self._tree.repulsion(Y, 0.0, state=state.tree)

    def _mesh(self, span: Array, state: FFTState, *, split: bool) -> _Mesh:
        spacing = self._accuracy.split_spacing if split else self._accuracy.spacing
        if not split and span.min() < _THIN:  # points have similar positions between the nodes, so errors do not cancel
            spacing = min(spacing, ACCURACIES["high"].spacing)
        radius = self._accuracy.radius if split else 0.0
        nodes = (_nodes(span[0], spacing), _nodes(span[1], spacing))
        for kept in state.transforms:
            room = [has / needs for has, needs in zip(kept.nodes, nodes, strict=True)]
            if (kept.spacing, kept.radius) == (spacing, radius) and min(room) >= 1.0 and max(room) <= _SPARE:
                return kept
        padded = (scipy.fft.next_fast_len(2 * nodes[0], real=True), scipy.fft.next_fast_len(2 * nodes[1], real=True))
        return _Mesh(spacing, nodes, padded, radius)

    def _cheapest(self, n: int, span: Array, split: _Mesh, cells: _Cells, state: FFTState) -> _Mesh | None:
        """Return the mesh to use, or None for the tree."""
        near = cells.pairs()
        plain = self._mesh(span, state, split=False)
        of_tree = TREE_COST * n * np.log2(n + 1) * (ACCURACIES["normal"].theta / self._accuracy.theta) ** 2
        of_split = np.inf if "split" in state.ruled_out else split.cost + PAIR_COST * near
        possible = near >= self._accuracy.least_near_pairs * n and plain.padded[0] * plain.padded[1] <= LARGEST_MESH
        of_plain = plain.cost if possible and "mesh" not in state.ruled_out else np.inf
        if of_tree <= min(of_split, of_plain):
            return None
        return plain if of_plain <= of_split else split

    def _by_mesh(self, Y: Array, low: Array, mesh: _Mesh, cells: _Cells, state: FFTState) -> tuple[float, Array]:
        state.used = "split" if mesh.radius else "mesh"
        n, run = len(Y), self._workers.run
        # Coordinates are relative to the corner of the mesh, which is the corner of the cells minus the margin.
        corner = low - _MARGIN * mesh.spacing
        coordinates = np.empty((2, n), np.float32)
        run(kernels.gather, n, Y, corner, cells.order, coordinates, grain=_LIGHT)
        per_unit = np.float32(1.0 / mesh.spacing)
        charges = np.empty(mesh.nodes, np.float32)
        shift = _MARGIN * mesh.spacing
        geometry: tuple[Any, ...] = (cells.shape[1], cells.side, shift, per_unit)
        run(kernels.spread, mesh.nodes[0], coordinates, cells.starts, *geometry, charges, grain=_LINES)
        potential = self._convolve(charges, mesh, _transform(mesh, state))
        near = np.empty((3, n if mesh.radius else 0), np.float32)
        if mesh.radius:
            square = mesh.radius**2
            constants = np.float32(square), np.float32(1.0 / (1.0 + square))
            geometry = (cells.shape[1], _REACH, *constants)
            run(kernels.near_pairs, cells.shape[0], coordinates, cells.starts, *geometry, near, grain=1)
        forces, partition = np.empty((n, 2)), np.empty(n_blocks(n))
        run(kernels.read, n, coordinates, cells.order, per_unit, potential, near, forces, partition)
        return float(partition.sum()), forces

    def _convolve(self, charges: Single, mesh: _Mesh, kernel: Single) -> Single:
        """Return the potential of the charges. Rows of zeros, and rows that are not read, are not transformed.

        Transforms run on fixed blocks of lines. The ``workers`` of scipy would divide the lines by the number of
        threads, and lines that do not fill a vector are rounded differently.
        """
        rows, columns = mesh.padded
        spectrum = np.empty((mesh.nodes[0], kernel.shape[1]), np.complex64)
        potential = np.empty(mesh.nodes, np.float32)

        def forward(block: int, lo: int, hi: int) -> None:
            lines = slice(lo * _LINES, hi * _LINES)
            spectrum[lines] = scipy.fft.rfft(charges[lines], n=columns, axis=1)

        def across(block: int, lo: int, hi: int) -> None:
            lines = slice(lo * _LINES, hi * _LINES)
            part = scipy.fft.fft(spectrum[:, lines], n=rows, axis=0)
            part *= kernel[:, lines]
            spectrum[:, lines] = scipy.fft.ifft(part, axis=0, overwrite_x=True)[: mesh.nodes[0]]

        def backward(block: int, lo: int, hi: int) -> None:
            lines = slice(lo * _LINES, hi * _LINES)
            potential[lines] = scipy.fft.irfft(spectrum[lines], n=columns, axis=1)[:, : mesh.nodes[1]]

        for transform, lines in ((forward, mesh.nodes[0]), (across, kernel.shape[1]), (backward, mesh.nodes[0])):
            self._workers.run(transform, -(-lines // _LINES), grain=1)
        return potential


def _transform(mesh: _Mesh, state: FFTState) -> Single:
    """Return the transform of the kernel divided by the squared transform of the B-spline.

    It is stored in the state for as long as the mesh is used.
    """
    if mesh not in state.transforms:
        state.transforms = {old: values for old, values in state.transforms.items() if old.radius != mesh.radius}
        state.transforms[mesh] = _kernel_transform(mesh)
    return state.transforms[mesh]


class _Cells(NamedTuple):
    """Points sorted by square cells, row by row."""

    side: float
    shape: tuple[int, int]
    starts: NDArray[np.int32]
    order: NDArray[np.int32]

    @classmethod
    def of(cls, Y: Array, low: Array, span: Array, side: float, workers: Workers) -> _Cells:
        n, inverse = len(Y), 1.0 / side
        shape = (int(span[0] * inverse) + 1, int(span[1] * inverse) + 1)  # rounded in the same way as the points' cells
        cell, order = np.empty(n, np.int32), np.empty(n, np.int32)
        starts = np.empty(shape[0] * shape[1] + 1, np.int32)
        workers.run(kernels.cell_of, n, Y, low, inverse, shape[1], cell, grain=_LIGHT)
        kernels.sort_by_cell(cell, starts, order)
        return cls(side, shape, starts, order)

    def pairs(self) -> float:
        """Return the number of pairs that the sum over near pairs visits."""
        return float(kernels.count_pairs(self.starts, *self.shape, _REACH))


def _nodes(extent: float, spacing: float) -> int:
    """Return the number of nodes over an extent, rounded up in steps of about a sixteenth.

    Rounding lets a transform be used again if the span changes little.
    """
    nodes = int(min(max(extent, _LEAST_EXTENT) / spacing, LARGEST_MESH)) + 2 * _MARGIN
    step = max(8, 1 << int(np.log2(nodes)) - 4)
    return -(-nodes // step) * step


def _kernel_transform(mesh: _Mesh) -> Single:
    axes = [np.minimum(np.arange(m), m - np.arange(m)) * mesh.spacing for m in mesh.padded]
    s = axes[0][:, None] ** 2 + axes[1][None, :] ** 2
    kernel = 1.0 / (1.0 + s)
    if mesh.radius:
        inside = s < mesh.radius**2
        edge = 1.0 + mesh.radius**2
        t = (mesh.radius**2 - s[inside]) / edge
        kernel[inside] = (1.0 + t * (1.0 + t * (1.0 + t))) / edge
    del s
    spectrum = scipy.fft.rfft2(kernel).real
    # The transform of the cubic B-spline is sinc^4. It enters twice: when charges are spread, and when potentials are
    # read.
    for axis, frequencies in enumerate((scipy.fft.fftfreq(mesh.padded[0]), scipy.fft.rfftfreq(mesh.padded[1]))):
        spectrum /= np.expand_dims(np.sinc(frequencies) ** 8, 1 - axis)
    return np.asarray(spectrum, dtype=np.float32)


ENGINE = FFTEngine
