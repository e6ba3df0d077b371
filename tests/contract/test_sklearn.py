"""scikit-learn's own checks of an estimator. DenSNE has the base class of DRSNE, and no checks of its own."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator

from drsne import DRSNE, DRSNEDetector

# Few iterations, small neighbourhoods: the checks fit dozens of data sets of 10 to 100 rows.
SMALL = DRSNE(perplexity=3.0, density_neighbors=3, max_iter=20)
# scikit-learn fits copies of rows again, but copies of a row do not coincide in a map. tests/unit/test_sample_weight.py
# compares the weighted objective with that of copies at one place.
COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "copies of a row do not coincide in a map"
    for kind in ("dense", "sparse")
}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [SMALL, DRSNEDetector(SMALL, contamination=0.2)], ids=["map", "detector"])
@pytest.mark.filterwarnings("ignore:Lowered:UserWarning")
@pytest.mark.filterwarnings("ignore:perplexity=:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator):
    expected = COPIES if estimator is SMALL else {}
    done = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}
    assert failed == {}
    assert len(done) > 40
