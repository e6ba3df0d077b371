"""Draw the first figure of the README: groups of very different density as plain t-SNE and as DR-SNE.

Run it as ``python examples/first_picture.py [folder]``. The folder is docs/images by default. The script requires
matplotlib.

Three Gaussian groups in eight dimensions have standard deviations .3, 1 and 2. Plain t-SNE draws them at the same
density. DR-SNE shows which one is dense and which one is sparse.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drsne import DRSNE

SEED = 1  # of the data; the maps of 0, 1 and 2 differ in the positions of the groups, and 1 has most room for labels
SIZES, DEVIATIONS = (800, 450, 250), (0.3, 1.0, 2.0)
COLOURS = ("#0072B2", "#E69F00", "#009E73")  # from Okabe and Ito; colour-blind readers can distinguish them
MAPS = {
    "t-SNE: all groups look equally dense": {"density_weight": 0},
    "DR-SNE: dense and sparse groups differ": {},
}


def three_gaussians(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the data and the group of every point."""
    rng = np.random.RandomState(seed)
    centres = rng.normal(size=(3, 8))
    centres *= 12.0 / np.linalg.norm(centres, axis=1, keepdims=True)
    groups = np.repeat(np.arange(3), SIZES)
    return centres[groups] + np.take(DEVIATIONS, groups)[:, None] * rng.normal(size=(sum(SIZES), 8)), groups


def draw(axis: object, Y: np.ndarray, groups: np.ndarray, title: str) -> None:
    """Draw one map, with the standard deviation of each group in the data above it."""
    Y = Y - (Y.min(axis=0) + Y.max(axis=0)) / 2
    half = 0.58 * np.ptp(Y, axis=0).max()
    axis.scatter(*Y.T, s=12, c=np.take(COLOURS, groups), alpha=0.8, linewidths=0)
    for group, (size, deviation) in enumerate(zip(SIZES, DEVIATIONS, strict=True)):
        part, style = Y[groups == group], {"ha": "center", "va": "bottom", "color": COLOURS[group]}
        place = ((part[:, 0].min() + part[:, 0].max()) / 2, part[:, 1].max())
        for text, height, options in (
            (f"{size} points", 6, {"fontsize": 14}),
            (f"std {deviation:g}", 24, {"fontsize": 18, "weight": "bold"}),
        ):
            axis.annotate(text, place, xytext=(0, height), textcoords="offset points", **style, **options)
    axis.set_title(title, fontsize=20, pad=12)
    axis.set_xlim(-half, half)
    axis.set_ylim(-half, 1.12 * half)
    axis.set_xticks([])
    axis.set_yticks([])
    for side in axis.spines.values():
        side.set_color("0.8")


def main(folder: Path) -> None:
    """Fit both maps and write first.png."""
    folder.mkdir(parents=True, exist_ok=True)
    X, groups = three_gaussians(SEED)
    figure = Figure(figsize=(14, 8.2))
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.06, top=0.935, wspace=0.03)
    for axis, (title, options) in zip(figure.subplots(1, 2), MAPS.items(), strict=True):
        draw(axis, DRSNE(random_state=0, n_jobs=-1, **options).fit_transform(X), groups, title)
        axis.set_aspect("equal")
    figure.text(0.5, 0.017, "std: standard deviation of the group in the data, 8 dimensions", ha="center", fontsize=15)
    figure.savefig(folder / "first.png", dpi=100)
    print(f"Wrote {folder / 'first.png'}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
