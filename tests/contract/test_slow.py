"""The list of slow tests names what there is."""

from __future__ import annotations

from pathlib import Path

from conftest import SLOW, is_slow

ROOT = Path(__file__).parents[2]


def test_slow_tests_exist():
    for path, _, name in (entry.partition("::") for entry in SLOW):
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_whole_folders_files_and_single_tests():
    assert is_slow("tests/integration/test_import.py::test_public_names_are_there")
    assert is_slow("tests/unit/test_path.py::test_parts_are_data[main-True]")
    assert is_slow("tests/contract/test_engines.py::test_partition_and_forces[start-2-fft]")
    assert not is_slow("tests/contract/test_engines.py::test_partition_and_forces_and_more")
    assert not is_slow("tests/unit/test_metrics.py::test_samples_estimate_the_whole[stress]")
