"""Find the outliers of Shuttle in a map, among training rows and among new rows.

Run it as ``python examples/shuttle_outliers.py``. It needs the package drsne-paper
(``pip install ./paper``), which reads Shuttle from the data home (docs/datasets.md).
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from drsne import DRSNEDetector
from drsne_paper.datasets import recipes

data = recipes.shuttle_sample()
X, outlier = recipes.standardise(data.X), np.asarray(data.y) == 1
new = np.random.default_rng(0).random(len(X)) < 0.2  # a fifth of the rows are not part of the fit

detector = DRSNEDetector(contamination=0.2, random_state=0, n_jobs=-1).fit(X[~new])
for name, rows in (("training rows", ~new), ("new rows", new)):
    found = detector.predict(X[rows]) == -1
    auroc = roc_auc_score(outlier[rows], -detector.score_samples(X[rows]))
    print(f"{name}: AUROC {auroc:.3f}; {outlier[rows][found].mean():.0%} of {found.sum()} reported rows are outliers")
