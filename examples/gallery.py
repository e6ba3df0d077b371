"""Draw the figures of docs/gallery.md: plain t-SNE and DR-SNE of the eight data sets of the quality benchmark.

Run it as ``python examples/gallery.py [folder] [name ...]``. The folder is docs/images by default. The script requires
matplotlib. Digits, Clusters, Helix and the four Gaussians need no download. The other data sets are read from the data
home (docs/datasets.md), and those that are not available are skipped. They are those of the package
drsne-paper (``pip install './paper[pbmc]'``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from reading_maps import write_small

from drsne import DRSNE, pl
from drsne_paper import datasets
from drsne_paper.datasets import recipes

TITLES = {
    "digits": "Digits",
    "fashion_mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "gaussians50": "Four Gaussians",
    "pbmc3k": "PBMC",
    "shuttle": "Shuttle",
    "controlled_clusters": "Clusters",
    "helix": "Helix",
}
GENERATED = ("controlled_clusters", "helix")
SEED, DPI = 3, 70
CLOTHES = ("T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


def load(name: str) -> Any:
    """Return a data set as in the benchmark."""
    if name in GENERATED:
        return datasets.load(name, n_samples=5000, random_state=0)
    return recipes.paper(name)


def labels_of(name: str, y: np.ndarray) -> np.ndarray:
    """Return labels that a reader understands."""
    if name == "fashion_mnist":
        return np.take(CLOTHES, y.astype(int))
    if name in ("controlled_clusters", "gaussians50"):
        return np.asarray([f"group {int(label) + 1}" for label in y])
    if name == "pbmc3k":
        return np.asarray([f"cluster {label}" for label in y])
    if name == "shuttle":
        return np.where(y == 1, "other classes", "class 1")
    return y


def drawn(name: str, data: Any) -> Any:
    """Return a figure of both maps, coloured by label and by the density of the data."""
    tsne = DRSNE(density_weight=0, random_state=SEED, n_jobs=-1).fit(data.X)
    model = DRSNE(random_state=SEED, n_jobs=-1).fit(data.X)
    figure = pl.new_figure((14.0, 4.3))
    axes = figure.subplots(1, 3)
    labels = labels_of(name, np.asarray(data.y))
    pl.embedding(tsne, labels, ax=axes[0], title=f"{TITLES[name]}: t-SNE", legend=False)
    pl.embedding(model, labels, ax=axes[1], title=f"{TITLES[name]}: DR-SNE")
    pl.embedding(model, model.input_concentration_, ax=axes[2], title="DR-SNE, coloured by the density of the data")
    return figure


def main(folder: Path, names: list[str]) -> None:
    """Write a figure for every data set that is available."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            data = load(name)
        except (OSError, ImportError) as error:
            print(f"Skipped {name}: {error}", flush=True)
            continue
        place = folder / f"gallery_{name}.png"
        write_small(drawn(name, data), place, DPI)
        print(f"Wrote {place}: {len(data.X)} rows.", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(Path(words[0] if words else "docs/images"), words[1:] or list(TITLES))
