"""Compare the detection of outliers in the default map, in the data, and in both combined.

    python benchmarks/outliers.py
    python benchmarks/outliers.py --report

The rules, fixed before the first run:

- Data: the six data sets of the paper's anomaly study, with its labels. Maps are fitted with default settings and the
  seeds 0, 1 and 2.
- Every detector of ``drsne.anomaly`` scores the points of the map, and the rows of the data. "Both" averages the rank
  of a row in the map and its rank in the data.
- The table shows the area under the precision-recall curve (AUPRC). Labels are used for nothing else.
- A map helps if its mean over detectors and seeds is above that of the data.

Each map is a line of results/outliers.jsonl, so an interrupted study resumes where it stopped.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from report import Results, table, write
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from drsne import DRSNE, anomaly
from drsne_paper.studies._anomaly_runs import DATASETS, labelled_data

SEEDS = (0, 1, 2)
WAYS = {"data": "the data", "map": "the map", "both": "both"}
ROWS = Results("outliers", "data", "seed")


def compared(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the AUPRC of every detector on the data, on a map, and on both."""
    Y = DRSNE(random_state=seed, n_jobs=-1).fit_transform(X)
    found: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    for name in anomaly.detectors():
        scores = {"data": anomaly.anomaly_scores(X, name), "map": anomaly.anomaly_scores(Y, name)}
        scores["both"] = rankdata(scores["data"]) + rankdata(scores["map"])
        for way in WAYS:
            found[way][name] = float(average_precision_score(y, scores[way]))
    return found


def report() -> None:
    """Write the tables."""
    rows, means, lines = ROWS.read(), [], []
    for name, title in DATASETS.items():
        found = [row for row in rows if row["data"] == name]
        if not found:
            continue
        values = {way: np.mean([list(row["auprc"][way].values()) for row in found]) for way in WAYS}
        means.append([title.short, *(f"{values[way]:.3f}" for way in WAYS), f"{found[0]['share']:.3f}"])
        for detector in anomaly.detectors():
            cells = [np.mean([row["auprc"][way][detector] for row in found]) for way in WAYS]
            lines.append([title.short, detector, *(f"{cell:.3f}" for cell in cells)])
    rules = (__doc__ or "").split("\n\n", 3)[3].split("\n\nEach map is a line")[0]
    write(
        "outliers",
        "Outliers in default maps",
        "python benchmarks/outliers.py",
        f"The rules:\n\n{rules}",
        "AUPRC, mean over the four detectors and three seeds. Random scores reach the share of outliers.",
        table(["data", *WAYS.values(), "share of outliers"], means),
        "By detector:",
        table(["data", "detector", *WAYS.values()], lines),
        rows=rows,
    )


def main() -> None:
    """Run what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    if not parser.parse_args().report:
        done = ROWS.keys()
        for name in DATASETS:
            missing = [seed for seed in SEEDS if ROWS.key({"data": name, "seed": seed}) not in done]
            if not missing:
                continue
            try:
                data = labelled_data(name)
            except (OSError, ImportError) as error:
                print(f"{name} is not available: {error}")
                continue
            y = np.asarray(data.y) == 1
            for seed in missing:
                row = {"data": name, "seed": seed, "auprc": compared(data.X, y, seed), "share": float(y.mean())}
                ROWS.append(row)
                print(name, seed, row["auprc"], flush=True)
    report()


if __name__ == "__main__":
    main()
