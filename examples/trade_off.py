"""Digits: the trade-off along a path of lambda, and the three ways to measure crowding in a map; write demo/.

python examples/trade_off.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from drsne import DRSNE, density_path, metrics, pl

MODES = {
    "t-SNE (lambda = 0)": {"density_weight": 0},
    "input, lambda = 6": {"density_weight": 6},
    "embedding, lambda = 6": {"density_weight": 6, "neighborhoods": "embedding"},
    "both, lambda = 6": {"density_weight": 6, "neighborhoods": "both"},
}


def main(folder: Path) -> None:
    """Write path.png and modes.png, and print scores."""
    folder.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    path = density_path(X, random_state=0, n_jobs=-1, verbose=1)
    path.plot(digit).savefig(folder / "path.png", dpi=80)
    models = {title: DRSNE(random_state=0, n_jobs=-1, **options).fit(X) for title, options in MODES.items()}
    for title, model in models.items():
        scores = metrics.evaluate(X, model.embedding_)
        print(
            f"{title:22s} trustworthiness {scores['trustworthiness']:.3f}  concentration correlation "
            f"{scores['concentration_correlation']:.3f}  density rank correlation "
            f"{scores['density_rank_correlation']:.3f}"
        )
    maps = {title: model.embedding_ for title, model in models.items()}
    crowding = {title: models[title].input_concentration_ for title in maps}  # of the data: the same in all
    pl.compare(maps, digit, crowding).savefig(folder / "modes.png", dpi=60)
    print(f"Wrote {folder / 'path.png'} and {folder / 'modes.png'}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
