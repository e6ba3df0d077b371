"""Pictures of the quality study: all maps at default settings, and the trade-off between the scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from data import EIGHT, EVEN, EXTENDED, NOISES, extended_data
from quality_methods import DEFAULTS, METHODS, OURS, PATH, SCORES, Point
from runner import RESULTS

from drsne_paper.rows import Row

# The sets of the paper, and the others. A picture is drawn again only if all of its maps are in the folder.
FILES = {"quality_maps.png": tuple(EIGHT), "quality_maps_even.png": tuple(EVEN | NOISES)}
DRAWN_SEED = 3
NEIGHBORS = SCORES["concentration_correlation"].neighbors  # of the radius that colours the maps
SHOWN = (0.2, 99.8)  # percentiles of the coordinates that set the limits of a panel
TRADED = {
    "density_rank_correlation": "quality_rho30.png",
    "local_density_rank_correlation": "quality_rho5.png",
    "concentration_correlation": "quality_cc.png",
}
STYLES = {
    PATH: ("o", "tab:red"),
    OURS: ("*", "darkred"),
    "drsne_strong": ("*", "tab:pink"),
    "drsne_plain": ("X", "tab:orange"),
    "sklearn_tsne": ("x", "black"),
    "umap": ("P", "0.45"),
    "pacmap": ("v", "tab:olive"),
    "scalemap": ("h", "tab:cyan"),
    "densmap": ("s", "tab:purple"),
    "densne": ("^", "tab:green"),
    "densne_program": ("2", "tab:green"),
    "paper_code": ("D", "tab:brown"),
}


def default_maps(results: Sequence[Row], maps: Path) -> list[tuple[str, str]]:
    """Draw every default map of one seed, a row for each data set, coloured by the log radius in the data.

    A picture whose maps are not all in the folder is kept as it is.
    """
    low, high = SHOWN
    text = (
        f"Maps at default settings, seed {DRAWN_SEED}, coloured by the logarithm of the mean distance to "
        f"{NEIGHBORS} neighbours in the data, from dense (dark) to sparse (light). Each panel shows the points "
        f"between the percentiles {low:g} and {high:g} of each coordinate, and a margin"
    )
    files = {
        (row["dataset"], row["method"]): maps / f"{row['key']}.npy"
        for row in results
        if row["seed"] == DRAWN_SEED and row["method"] in DEFAULTS and row["value"] == DEFAULTS[row["method"]]
    }
    files = {place: file for place, file in files.items() if file.exists()}
    for picture, sets in FILES.items():
        if all((name, method) in files for name in sets for method in DEFAULTS):
            draw_maps(files, sets, picture)
        else:
            print(f"There are no maps for {picture} in {maps}, so it is kept as it is.")
    return [(picture, text) for picture in FILES]


def draw_maps(files: dict[tuple[str, str], Path], sets: Sequence[str], picture: str) -> None:
    """Draw the maps in the files, by data set and method."""
    import matplotlib.pyplot as plt

    size = (2.0 * len(DEFAULTS), 2.05 * len(sets) + 0.6)
    figure, axes = plt.subplots(len(sets), len(DEFAULTS), figsize=size, squeeze=False, layout="constrained")
    for line, name in zip(axes, sets, strict=True):
        colour = log_radius(extended_data(name).X)
        for axis, method in zip(line, DEFAULTS, strict=True):
            draw(axis, np.load(files[name, method]).astype(np.float64), colour)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(EXTENDED[name])
    for axis, method in zip(axes[0], DEFAULTS, strict=True):
        axis.set_title(METHODS[method].title, fontsize=10)
    figure.savefig(RESULTS / picture, dpi=75)
    plt.close(figure)


def log_radius(X: np.ndarray) -> np.ndarray:
    """Return the log of the mean distance to the nearest neighbours, clipped at its 1 % and 99 % quantiles."""
    from drsne.neighbors.search import knn

    radius = np.log(np.maximum(knn(X, NEIGHBORS).distances.mean(axis=1), 1e-12))
    return np.clip(radius, *np.quantile(radius, [0.01, 0.99]))


def draw(axis: Any, Y: np.ndarray, colour: np.ndarray) -> None:
    """Draw one map with equal units on both axes."""
    axis.scatter(*Y.T, c=colour, s=1.2, linewidths=0, cmap="viridis", rasterized=True)
    low, high = np.percentile(Y, SHOWN, axis=0)
    centre, half = (low + high) / 2, 0.56 * (high - low).max()
    axis.set(xlim=(centre[0] - half, centre[0] + half), ylim=(centre[1] - half, centre[1] + half), aspect="equal")


def trade_offs(points: list[Point]) -> list[tuple[str, str]]:
    """Draw trustworthiness against each density score: our path as a line, the settings of peers as points."""
    import matplotlib.pyplot as plt

    sets = [name for name in EIGHT if any(point.dataset == name for point in points)]
    files = []
    for score, file in TRADED.items():
        figure, axes = plt.subplots(2, 4, figsize=(17, 8.6), layout="constrained")
        for axis, name in zip(axes.flat, sets, strict=False):
            draw_trade_off(axis, [point for point in points if point.dataset == name], score)
            axis.set(title=EIGHT[name], xlabel=SCORES[score].title.lower(), ylabel="trustworthiness, 10 neighbours")
        for axis in axes.flat[len(sets) :]:
            axis.set_visible(False)
        handles: dict[str, Any] = {}
        for axis in axes.flat:
            handles |= {text: handle for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
        titles = [METHODS[method].title for method in STYLES if METHODS[method].title in handles]
        if titles:
            figure.legend(
                [handles[text] for text in titles], titles, loc="outside lower center", ncols=6, frameon=False
            )
        figure.savefig(RESULTS / file, dpi=85)
        plt.close(figure)
        text = f"Trustworthiness against {SCORES[score].label}: our path is a line, settings of peers are points"
        files.append((file, text))
    return files


def draw_trade_off(axis: Any, points: list[Point], score: str) -> None:
    """Draw the settings of all methods on one data set."""
    for method, (marker, colour) in STYLES.items():
        here = [point.scores for point in points if point.method == method and score in point.scores]
        if here:
            x, y = [scores[score] for scores in here], [scores["trustworthiness"] for scores in here]
            size, layer = (14, 3) if method == OURS else (6, 2)
            line = "-" if method == PATH else "none"
            axis.plot(
                x, y, marker=marker, ls=line, color=colour, ms=size, lw=1.4, alpha=0.85, zorder=layer,
                label=METHODS[method].title,
            )  # fmt: skip
    axis.grid(alpha=0.3)
