"""The list of slow tests names what there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SLOW, is_slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("entry", SLOW)
def test_a_slow_test_exists(entry):
    path, _, name = entry.partition("::")
    assert (ROOT / path).exists()
    assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/integration/test_import.py::test_public_names_are_there", True),
        ("tests/unit/test_path.py::test_parts_are_data[main-True]", True),
        ("tests/contract/test_engines.py::test_partition_and_forces[start-2-fft]", True),
        ("tests/contract/test_engines.py::test_partition_and_forces_and_more", False),
        ("tests/unit/test_metrics.py::test_samples_estimate_the_whole[stress]", False),
    ],
)
def test_whole_folders_files_and_single_tests(nodeid, expected):
    assert is_slow(nodeid) == expected
