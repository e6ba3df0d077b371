"""Embed scikit-learn's Digits with DR-SNE and with plain t-SNE, and compare the two maps.

Run it as ``python examples/digits.py [folder]``. It prints the scores of both maps, and writes a table and a figure to
the folder, which is demo by default.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from drsne import DRSNE, metrics, pl

COLUMNS = {
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "concentration_correlation": "conc. corr.",
    "density_rank_correlation": "density rank corr.",
    "local_density_rank_correlation": "rank corr., k = 5",
    "silhouette": "silhouette",
}


def main(folder: Path) -> None:
    """Fit both maps, print their scores, and write a CSV file and a PNG file."""
    folder.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    models = {}
    for title, options in (("t-SNE (lambda = 0)", {"density_weight": 0.0}), ("DR-SNE", {})):
        print(f"{title}: embedding {X.shape[0]} images of digits ...", flush=True)
        start = time.perf_counter()
        models[title] = DRSNE(random_state=0, n_jobs=-1, verbose=1, **options).fit(X)
        print(f"{title}: {time.perf_counter() - start:.1f} s", flush=True)
    print_scores(X, digit, models)
    data = models["DR-SNE"].input_concentration_
    write_csv(folder / "digits.csv", digit, data, models)
    figure = pl.compare(
        {title: model.embedding_ for title, model in models.items()},
        digit,
        {title: model.concentration_ for title, model in models.items()},
    )
    figure.savefig(folder / "digits.png", dpi=110)
    print(f"Wrote {folder / 'digits.csv'} (maps, labels, concentrations) and {folder / 'digits.png'} (figure).")


def print_scores(X: np.ndarray, digit: np.ndarray, models: dict[str, DRSNE]) -> None:
    """Print a table of scores with one row per map."""
    print(f"\n{'':20s}" + "".join(f"{name:>20s}" for name in COLUMNS.values()))
    for title, model in models.items():
        scores = metrics.evaluate(X, model.embedding_, digit)
        print(f"{title:20s}" + "".join(f"{scores[key]:20.3f}" for key in COLUMNS))
    print()


def write_csv(path: Path, digit: np.ndarray, data: np.ndarray, models: dict[str, DRSNE]) -> None:
    """Write the labels, the concentrations of the data, and the coordinates and concentrations of each map."""
    names, columns = ["digit", "input_concentration"], [digit, data]
    for prefix, model in zip(("tsne", "drsne"), models.values(), strict=True):
        names += [f"{prefix}0", f"{prefix}1", f"{prefix}_concentration"]
        columns += [*model.embedding_.T, model.concentration_]
    np.savetxt(
        path,
        np.column_stack(columns),
        fmt=["%d"] + ["%.6g"] * (len(names) - 1),
        delimiter=",",
        header=",".join(names),
        comments="",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
