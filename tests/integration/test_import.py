"""Importing the package is free; its parts arrive when used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import drsne


def run(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_import_loads_no_third_party_module():
    code = (
        "import sys; before = set(sys.modules); import drsne; "
        "loaded = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "heavy = loaded & {'numpy', 'numba', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'torch', 'joblib'}; "
        "assert not heavy, heavy; assert drsne.__version__; print('free')"
    )
    done = run(code)
    assert done.stdout.strip() == "free", done.stderr


def test_a_fit_loads_neither_matplotlib_nor_torch():
    code = (
        "import sys, drsne; "
        "X = [[0., 1], [1, 0], [2, 5], [3, 3], [0, 4], [7, 7], [8, 2]]; "
        "drsne.DRSNE(perplexity=2, density_neighbors=2, max_iter=4).fit(X); "
        "print(sorted({'matplotlib', 'torch'} & set(sys.modules)))"
    )
    done = run(code)
    assert done.stdout.strip() == "[]", done.stderr


def test_public_names_are_there():
    for name in drsne.__all__:
        assert getattr(drsne, name) is not None
    assert set(drsne.__all__) <= set(dir(drsne))
    with pytest.raises(AttributeError, match="no attribute 'TSNE'"):
        drsne.TSNE  # noqa: B018


def test_works_where_no_cache_can_be_written(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("a file, not a folder")
    code = (
        "import drsne; m = drsne.DRSNE(perplexity=2, density_neighbors=2, max_iter=4); "
        "print(m.fit_transform([[0., 1], [1, 0], [2, 5], [3, 3], [0, 4], [7, 7], [8, 2]]).shape)"
    )
    done = run(code, NUMBA_CACHE_DIR=str(nowhere / "below"))
    assert done.stdout.strip() == "(7, 2)", done.stderr
