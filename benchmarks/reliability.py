"""Compare two scores of the positions in a map: our reliability, and the perturbation score of LOO-map.

    python benchmarks/reliability.py [--data digits shuttle]

LOO-map (Liu, Ma and Zhong, arXiv 2410.16608) places a changed row in a map whose other rows stay fixed. Its
perturbation score is the largest distance by which a row moves in the map if the row is moved in the data, in both
directions along each of the three leading principal components. Both scores are computed here with our placement of
new rows. The rules:

- Data: those of the quality study, 1,000 random rows of a default map, seed 3. Our score was chosen among variants
  (the row itself, or halfway to one to six neighbours; mean or maximum) on Digits, Fashion-MNIST, PBMC and Shuttle. The
  other four data sets were not looked at before.
- A perturbation has half the length of the median distance of a row to its 30th neighbour in the data. Movements in the
  map are divided by the mean distance of a row to its 30 neighbours in the map, as in our reliability.
- A row is misplaced if it is in the tenth of rows with the fewest of its 10 nearest neighbours in the data among its 30
  nearest neighbours in the map. The table shows how well each score finds these rows (AUROC; 0.5 is chance), the rank
  correlation of the two scores, and the seconds that they take.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from data import EIGHT, prepare
from report import table, write
from scipy.spatial import cKDTree
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from drsne import DRSNE, metrics, neighbors

DATA = tuple(EIGHT)
SEED, SAMPLE, NEAR, DIRECTIONS, LENGTH = 3, 1000, 30, 3, 0.5


def compared(name: str, X: np.ndarray) -> list[object]:
    """Return the line of a data set."""
    model = DRSNE(random_state=SEED, n_jobs=-1).fit(X)
    Y, n = model.embedding_, len(X)
    near = neighbors.knn(X, NEAR, n_jobs=-1)
    start = time.perf_counter()
    trust = metrics.reliability(model, max_samples=SAMPLE, random_state=SEED)
    ours = time.perf_counter() - start
    rows = np.flatnonzero(~np.isnan(trust))
    distances, in_map = cKDTree(Y).query(Y[rows], NEAR + 1)
    start = time.perf_counter()
    axes = PCA(DIRECTIONS, random_state=0).fit(X).components_ * (LENGTH * np.median(near.distances[:, -1]))
    moved = np.zeros(len(rows))
    for step in (*axes, *-axes):
        places = model._placed_again(rows, X[rows] + step)
        moved = np.maximum(moved, np.linalg.norm(places - Y[rows], axis=1))
    theirs = time.perf_counter() - start
    moved /= distances[:, 1:].mean(axis=1)
    kept = [len(np.intersect1d(a[:10], b[1:])) for a, b in zip(near.indices[rows], in_map, strict=True)]
    order = np.argsort(kept, kind="stable")
    misplaced = np.zeros(len(rows), bool)
    misplaced[order[: len(rows) // 10]] = True
    print(name, n, flush=True)
    return [
        EIGHT[name],
        f"{np.median(trust[rows]):.2f}",
        f"{(trust[rows] < 0.2).mean():.3f}",
        f"{roc_auc_score(misplaced, -trust[rows]):.3f}",
        f"{roc_auc_score(misplaced, moved):.3f}",
        f"{spearmanr(1.0 - trust[rows], moved)[0]:.2f}",
        f"{ours:.1f}",
        f"{theirs:.1f}",
    ]


def main() -> None:
    """Compare the scores and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the data are kept")
    options = parser.parse_args()
    lines = [compared(name, np.load(path)) for name, path in prepare(options.data, options.folder).items()]
    header = ["data", "median reliability", "below 0.2", "AUROC", "AUROC of LOO-map", "rank correlation", "s",
              "s of LOO-map"]  # fmt: skip
    rules = (__doc__ or "").split("\n\n", 2)[2].strip()
    write("reliability", "Reliability of positions", "python benchmarks/reliability.py", rules, table(header, lines))


if __name__ == "__main__":
    main()
