"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from drsne import DRSNE, DenSNE, DRSNEDetector

# Few iterations, small neighbourhoods: the checks fit dozens of data sets of 10 to 100 rows.
SMALL = {"perplexity": 3.0, "density_neighbors": 3, "max_iter": 20}
# scikit-learn fits copies of rows again, but copies of a row do not coincide in a map. tests/unit/test_sample_weight.py
# compares the weighted objective with that of copies at one place.
COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "copies of a row do not coincide in a map"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [
        DRSNE(**SMALL),
        DenSNE(perplexity=3.0, max_iter=20, init="random"),
        DRSNEDetector(DRSNE(**SMALL), contamination=0.2),
    ],
    expected_failed_checks=lambda estimator: COPIES if isinstance(estimator, DRSNE) else {},
)
@pytest.mark.filterwarnings("ignore:Lowered:UserWarning")
@pytest.mark.filterwarnings("ignore:perplexity=:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)
