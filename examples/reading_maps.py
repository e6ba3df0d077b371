"""Draw the figures of docs/reading.md: what a map shows, and what only looks as if it did.

Run it as ``python examples/reading_maps.py [folder]``. The folder is docs/images by default. The script requires
matplotlib. All data are generated, or included in scikit-learn. It prints the numbers that the page cites.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits, make_moons, make_s_curve

from drsne import DRSNE, metrics, pl

DPI = 80
COLOURS = ("#0072B2", "#E69F00", "#009E73")  # from Okabe and Ito; colour-blind readers can distinguish them


def fitted(X: np.ndarray, **parameters: Any) -> DRSNE:
    """Return a model with the seed 0, unless another one is given."""
    return DRSNE(**{"random_state": 0, "n_jobs": -1, **parameters}).fit(X)


def panels(number: int, size: float = 4.4, height: float = 4.5) -> tuple[Any, Any]:
    """Return a figure with panels side by side."""
    figure = pl.new_figure((size * number, height))
    return figure, figure.subplots(1, number)


def write_small(figure: Any, place: Path, dpi: int = DPI) -> None:
    """Write a figure as a PNG file with at most 256 colours, which is several times smaller and looks the same."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi)
    with Image.open(content) as picture:
        picture.convert("RGB").quantize(256, kmeans=3).save(place, optimize=True)


def hidden_density() -> tuple[Any, str]:
    """Draw one group that is narrow and dense on one side, in the data, with t-SNE and with DR-SNE."""
    rng = np.random.default_rng(0)
    along = rng.random(1500)
    X = rng.normal(size=(1500, 8)) * (0.25 * 8**along)[:, None]
    X[:, 0] += 30 * along**1.3
    tsne, model = fitted(X, density_weight=0), fitted(X)
    figure, axes = panels(3)
    for axis, source, title in (
        (axes[0], X[:, :2], "The data: the first two of eight columns"),
        (axes[1], tsne, "t-SNE: both sides look alike"),
        (axes[2], model, "DR-SNE: a dense and a sparse side"),
    ):
        pl.embedding(source, model.input_concentration_, ax=axis, title=title, legend=axis is axes[2])
    scores = [metrics.density_rank_correlation(X, each.embedding_) for each in (tsne, model)]
    return figure, f"density rank correlation: t-SNE {scores[0]:.2f}, DR-SNE {scores[1]:.2f}"


def residuals() -> tuple[Any, str]:
    """Draw where a map of Digits is denser or sparser than it should be."""
    model = fitted(load_digits().data)
    figure = pl.density(model, figsize=(13.2, 4.1))
    return figure, f"contrast {model.contrast_:.2f}"


def torn_groups() -> tuple[Any, str]:
    """Draw a connected sheet that t-SNE tears at a low perplexity, and two curves with a real gap."""
    rng = np.random.default_rng(0)
    sheet = make_s_curve(900, noise=0.05, random_state=0)[0]
    curves = 10 * make_moons(800, noise=0.03, random_state=0)[0]
    curves = np.column_stack((curves, 0.5 * rng.normal(size=(800, 4))))
    torn, whole, two = fitted(sheet, density_weight=0, perplexity=5), fitted(sheet), fitted(curves)
    figure, axes = panels(4, 3.7, 4.1)
    pl.embedding(torn, ax=axes[0])
    axes[0].set_title("A sheet, t-SNE, perplexity 5")
    numbers = []
    for axis, X, model, title in (
        (axes[1], sheet, torn, "The same map, with lines"),
        (axes[2], sheet, whole, "The same sheet, DR-SNE"),
        (axes[3], curves, two, "Two curves, DR-SNE"),
    ):
        pl.fragmentation(X, model, ax=axis)
        numbers.append(metrics.fragmentation(X, model.embedding_))
        axis.set_title(f"{title}\ntorn neighbours: {numbers[-1]:.1%}")
    return figure, "fragmentation: " + ", ".join(f"{number:.4f}" for number in numbers)


def noise() -> tuple[Any, str]:
    """Draw Gaussian noise, which has no clusters, at three perplexities."""
    X = np.random.default_rng(0).normal(size=(600, 10))
    figure, axes = panels(3)
    numbers = []
    for axis, perplexity in zip(axes, (2, 5, 30), strict=True):
        Y = fitted(X, density_weight=0, perplexity=perplexity).embedding_
        numbers.append((metrics.fragmentation(X, Y), metrics.trustworthiness(X, Y)))
        pl.embedding(Y, ax=axis, title=f"Noise, t-SNE, perplexity {perplexity}")
    return figure, "fragmentation, trustworthiness: " + ", ".join(f"{a:.3f}, {b:.3f}" for a, b in numbers)


def sizes_and_distances() -> tuple[Any, str]:
    """Draw three groups on a line, of which one is far away, with three initial maps."""
    rng = np.random.default_rng(0)
    groups = np.repeat(("A", "B", "C"), (300, 300, 300))
    X = rng.normal(size=(900, 10))
    X[:, 0] += np.repeat((0.0, 10.0, 60.0), 300)
    figure, axes = panels(3)
    pl.embedding(X[:, :2], groups, ax=axes[0], title="The data", legend=False)
    for axis, seed in zip(axes[1:], (0, 2), strict=True):
        model = fitted(X, init="random", random_state=seed)
        pl.embedding(model, groups, ax=axis, title=f"DR-SNE, random start, seed {seed}", legend=axis is axes[2])
    return figure, ""


def novel_rows() -> tuple[Any, str]:
    """Draw new rows that are like the training rows, and new rows that are unlike all of them."""
    rng = np.random.default_rng(0)
    centres = 12 * np.eye(3, 8)
    X = np.vstack([centre + rng.normal(size=(300, 8)) for centre in centres])
    known = np.vstack([centre + rng.normal(size=(15, 8)) for centre in centres])
    unlike = 9 * np.ones(8) + rng.normal(size=(45, 8))
    model = fitted(X)
    new = np.vstack((known, unlike))
    Y, novelty = model.transform(new), model.novelty(new)
    figure, axes = panels(2, 5.2, 4.6)
    pl.embedding(model, ax=axes[0], title="The map, and new rows in it")
    kinds = ((known, COLOURS[1], "like training rows"), (unlike, "#D55E00", "unlike all training rows"))
    for number, (_, colour, title) in enumerate(kinds):
        rows = slice(0, 45) if number == 0 else slice(45, None)
        axes[0].scatter(*Y[rows].T, s=26, color=colour, edgecolors="black", linewidths=0.5, label=title, zorder=4)
        axes[1].hist(novelty[rows], bins=np.geomspace(0.1, 30, 40), color=colour, label=title)
    axes[0].legend(loc="best", fontsize=9)
    axes[0].autoscale()
    axes[1].axvline(3, color="0.4", linestyle="--")
    axes[1].set_xscale("log")
    axes[1].set_xlabel("novelty (above 3, the position means little)")
    axes[1].set_ylabel("new rows")
    axes[1].set_title("The novelty tells them apart")
    numbers = (novelty[:45].min(), novelty[:45].max(), novelty[45:].min(), novelty[45:].max())
    return figure, "novelty: " + ", ".join(f"{number:.2f}" for number in numbers)


FIGURES = {
    "reading_density": hidden_density,
    "reading_residual": residuals,
    "reading_torn": torn_groups,
    "reading_noise": noise,
    "reading_distances": sizes_and_distances,
    "reading_novel": novel_rows,
}


def main(folder: Path) -> None:
    """Write all figures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        figure, numbers = make()
        write_small(figure, folder / f"{name}.png")
        print(f"Wrote {folder / name}.png. {numbers}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
