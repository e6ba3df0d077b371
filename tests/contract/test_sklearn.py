"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from drsne import DRSNE, DenSNE, DRSNEDetector

# Few iterations, small neighbourhoods: the checks fit dozens of data sets of 10 to 100 rows.
SMALL = {"perplexity": 3.0, "density_neighbors": 3, "max_iter": 20}


@parametrize_with_checks(
    [
        DRSNE(**SMALL),
        DRSNE(**SMALL, density_weight=0.0, init="random"),
        DenSNE(perplexity=3.0, max_iter=20),
        DenSNE(perplexity=3.0, max_iter=20, density_weight=0.0, init="random"),
        DRSNEDetector(DRSNE(**SMALL), contamination=0.2),
    ]
)
@pytest.mark.filterwarnings("ignore:Lowered:UserWarning")
@pytest.mark.filterwarnings("ignore:perplexity=:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)
