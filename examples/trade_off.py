"""Draw the trade-off along a path of lambda on Digits, and compare the choices of neighbourhoods.

Run it as ``python examples/trade_off.py [folder]``. It prints scores and times, and writes two figures to the folder,
which is demo by default.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from drsne import DRSNE, density_path, metrics, pl

MODES = {
    "t-SNE (density_weight=0)": {"density_weight": 0},
    'neighborhoods="both" (default)': {},
    'neighborhoods="input"': {"neighborhoods": "input"},
    'neighborhoods="embedding"': {"neighborhoods": "embedding"},
}
NAMES = {
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
    "concentration_correlation": "CC",
    "density_rank_correlation": "rho30",
    "local_density_rank_correlation": "rho5",
}


def main(folder: Path) -> None:
    """Write path.png and modes.png, and print scores and times."""
    folder.mkdir(parents=True, exist_ok=True)
    X, digit = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    DRSNE(max_iter=20, random_state=0, n_jobs=-1).fit(X)  # compile first, so that times are comparable
    models = {}
    for title, options in MODES.items():
        start = time.perf_counter()
        models[title] = DRSNE(random_state=0, n_jobs=-1, **options).fit(X)
        seconds = time.perf_counter() - start
        scores = metrics.evaluate(X, models[title].embedding_)
        print(f"{title:32s}" + "  ".join(f"{short} {scores[name]:.3f}" for name, short in NAMES.items()), end="")
        print(f"  {seconds:.1f} s", flush=True)
    maps = {title: model.embedding_ for title, model in models.items()}
    density = {title: model.input_concentration_ for title, model in models.items()}  # of the data
    pl.compare(maps, digit, density).savefig(folder / "modes.png", dpi=80)

    start = time.perf_counter()
    path = density_path(X, random_state=0, n_jobs=-1)
    print(f"A path of {len(path)} weights: {time.perf_counter() - start:.1f} s")
    chosen = path.select(max_trustworthiness_drop=0.01, max_continuity_drop=0.01, criterion="density")
    for at, weight in enumerate(path.weights):
        scores = "  ".join(f"{short} {path.metrics[name][at]:.3f}" for name, short in NAMES.items())
        print(f"density_weight {weight:4g}: {scores}{'  <- chosen by auto' if at == chosen else ''}")
    path.plot(digit, chosen=chosen).savefig(folder / "path.png", dpi=80)
    print(f"Wrote {folder / 'path.png'} and {folder / 'modes.png'}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
