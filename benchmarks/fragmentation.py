"""Check the fragmentation score on drawings whose answer is known, and on maps whose true pieces are counted.

python benchmarks/fragmentation.py [--seeds 3]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from families import pieces, six, three
from report import table, write
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from drsne import DRSNE, metrics

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "fragmentation.png"
SIZES = (100, 300, 1000, 5000)
SETTINGS = {
    "density_weight=0 (t-SNE)": {"density_weight": 0.0},
    "density_weight=2.1": {"density_weight": 2.1},
    "density_weight=10": {"density_weight": 10.0},
    'neighborhoods="both", 0.3': {"density_weight": 0.3, "neighborhoods": "both"},
    'neighborhoods="both", 1': {"density_weight": 1.0, "neighborhoods": "both"},
    'neighborhoods="both", 5': {"density_weight": 5.0, "neighborhoods": "both"},
}
# The same settings on every version, whatever the default kernel is.
FIXED = {"kernel": "fixed"} if "kernel" in DRSNE().get_params() else {}


def disc(n: int, rng: np.random.RandomState) -> np.ndarray:
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)] * np.sqrt(rng.rand(n, 1))


def ring(n: int, rng: np.random.RandomState) -> np.ndarray:
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.c_[np.cos(angle), np.sin(angle)] * rng.normal(1.0, 0.03, (n, 1))


def line(n: int, rng: np.random.RandomState) -> np.ndarray:
    along = np.sort(rng.rand(n))
    return np.c_[along - 0.5, 0.1 * np.sin(6.0 * along)] + 0.005 * rng.normal(size=(n, 2))


def in_pieces(X: np.ndarray, size: int, shape, rng: np.random.RandomState) -> np.ndarray:
    """Return a map of one group whose k-means clusters of about ``size`` points are drawn as separate shapes."""
    n_pieces = max(2, len(X) // size)
    label = KMeans(n_pieces, n_init=1, max_iter=20, random_state=0).fit_predict(X)
    side = int(np.ceil(np.sqrt(n_pieces)))
    Y = np.empty((len(X), 2))
    for piece, (row, column) in enumerate(np.argwhere(np.ones((side, side)))[:n_pieces]):
        members = label == piece
        Y[members] = 0.4 * shape(int(members.sum()), rng) + (2.0 * row, 2.0 * column)
    return Y


def in_cells(X: np.ndarray) -> np.ndarray:
    """Return a map of points in the unit square that moves cells of about twelve points apart."""
    side = round(np.sqrt(len(X) / 12))
    cell = np.minimum((side * X).astype(int), side - 1)
    return 0.8 * (side * X - cell) + 3.0 * cell


def drawings(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return data and map of one group, drawn whole and drawn torn."""
    rng = np.random.RandomState(0)
    plane, wide = rng.normal(size=(n, 2)), rng.normal(size=(n, 8))
    square = rng.rand(n, 2)
    tails = rng.standard_t(3, size=(n, 2))
    angle = np.sort(rng.uniform(0.0, 10.0, n))
    spiral = np.c_[np.cos(angle), np.sin(angle)] * angle[:, None] + 0.02 * rng.normal(size=(n, 2))
    return {
        "Gaussian, as it is": (plane, plane),
        "heavy tails (t, 3 degrees), as they are": (tails, tails),
        "spiral, as it is": (spiral, spiral),
        "8-d Gaussian as a disc, points in any order": (wide, disc(n, rng)),
        "8-d Gaussian as a Gaussian, in any order": (wide, rng.normal(size=(n, 2))),
        "square, cut into cells of about 12 points": (square, in_cells(square)),
        "8-d Gaussian as beads of about 6": (wide, in_pieces(wide, 6, disc, rng)),
        "8-d Gaussian as beads of about 12": (wide, in_pieces(wide, 12, disc, rng)),
        "8-d Gaussian as beads of about 25": (wide, in_pieces(wide, 25, disc, rng)),
        "8-d Gaussian as strings of about 25": (wide, in_pieces(wide, 25, line, rng)),
        "8-d Gaussian as rings of about 25": (wide, in_pieces(wide, 25, ring, rng)),
        "8-d Gaussian as one ring, in any order": (wide, ring(n, rng)),
        "8-d Gaussian as one ring, by its angle": (wide, wide[:, :2] / np.linalg.norm(wide[:, :2], axis=1)[:, None]),
    }


def halves(n: int = 1000) -> list[list[str]]:
    """Return a disc whose halves are moved apart by multiples of its median nearest-neighbour distance."""
    X = disc(n, np.random.RandomState(0))
    unit = np.median(NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X)[0][:, 1])
    right = (X[:, :1] > 0) * np.array([[1.0, 0.0]])
    gaps = (0, 1, 2, 3, 4, 6, 8, 16, 100)
    return [
        ["gap", *map(str, gaps)],
        ["score", *(f"{metrics.fragmentation(X, X + g * unit * right):.3f}" for g in gaps)],
    ]


DATA = {
    "three": lambda: three(0),
    "six": lambda: six(3),
}


def fitted(seeds: int) -> tuple[list[list[str]], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return rows of the table of fitted maps, their (pieces, score) by data set, and the maps of the picture."""
    rows, found, shown = [], {}, {}
    for name, make in DATA.items():
        X, groups = make()
        for label, options in SETTINGS.items():
            maps = [DRSNE(random_state=seed, **FIXED, **options).fit_transform(X) for seed in range(seeds)]
            counts = [pieces(Y, groups) for Y in maps]
            scores = [metrics.fragmentation(X, Y) for Y in maps]
            pairs = [(sum(count), score) for count, score in zip(counts, scores, strict=True)]
            found[name] = np.array([*found.get(name, []), *pairs])
            rows.append([name, label, ", ".join(map(str, counts[0])), *(f"{score:.3f}" for score in scores)])
            shown[f"{name}: {label}"] = maps[0]
            print(rows[-1], flush=True)
    return rows, found, shown


def timed(n: int = 70_000) -> str:
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, 3))
    neighbors = X[:, :2].copy()
    metrics.fragmentation(X[:500], neighbors[:500])  # compiles
    start = time.perf_counter()
    metrics.fragmentation(X, neighbors)
    took = time.perf_counter() - start
    return f"{took:.1f} s for {n:,} points (one thread), with the search of the data's neighbours."


def picture(shown: dict[str, np.ndarray]) -> None:
    """Draw the same data whole and torn, with all scores."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, groups = DATA["three"]()
    chosen = ("density_weight=0 (t-SNE)", "density_weight=2.1", 'neighborhoods="both", 1')
    titles = ("drawn whole", "drawn as strings and islands", "drawn as beads")
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.9), layout="constrained")
    for ax, title, label in zip(axes, titles, chosen, strict=True):
        Y = shown[f"three: {label}"]
        scores = metrics.evaluate(X, Y)
        ax.scatter(*Y.T, s=3, c=groups, cmap="Dark2", vmax=7, lw=0)
        ax.set_title(f"{title}\nfragmentation {scores['fragmentation']:.2f}", fontsize=12)
        below = [
            f"trustworthiness {scores['trustworthiness']:.2f}, continuity {scores['continuity']:.2f}",
            f"concentration correlation {scores['concentration_correlation']:.2f}",
            f"density rank correlation {scores['density_rank_correlation']:.2f} (30), "
            f"{scores['local_density_rank_correlation']:.2f} (5)",
        ]
        ax.set_xlabel("\n".join(below), fontsize=10)
        ax.set(xticks=[], yticks=[])
        ax.set_aspect("equal", adjustable="datalim")
    figure.savefig(IMAGE, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    by_size = {n: {label: metrics.fragmentation(X, Y) for label, (X, Y) in drawings(n).items()} for n in SIZES}
    drawn = [[label, *(f"{by_size[n][label]:.3f}" for n in SIZES)] for label in by_size[SIZES[0]]]
    rows, found, shown = fitted(seeds)
    picture(shown)
    ranks = ", ".join(f"{spearmanr(*pairs.T)[0]:.2f} ({name}, {len(pairs)} maps)" for name, pairs in found.items())
    header, values = halves()
    write(
        "fragmentation",
        "Fragmentation",
        "python benchmarks/fragmentation.py",
        "The score `metrics.fragmentation` of drawings whose answer is known (0: whole), for groups of several sizes.",
        table(["one group", *(f"n = {n}" for n in SIZES)], drawn),
        "A disc of 1000 points whose halves are moved apart; the gap is in units of the median nearest-neighbour "
        "distance. Only the neighbours across the cut can be torn.",
        table(header, [values]),
        "Maps of Gaussian groups. The number of pieces of each group (first seed) is by single linkage within the true "
        "group, at four times its median nearest-neighbour distance, which the score does not know.",
        table(["data", "setting", "pieces", *(f"score, seed {seed}" for seed in range(seeds))], rows),
        f"Rank correlation of the score with the number of pieces over these maps: {ranks}.",
        f"Time: {timed()}",
    )


if __name__ == "__main__":
    main()
