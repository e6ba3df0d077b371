"""Plots: what a notebook shows, and what is refused."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

from drsne import pl

pytest.importorskip("matplotlib", reason="plots need matplotlib")

Y = np.random.default_rng(0).normal(size=(60, 2))


def test_a_notebook_shows_the_figure():
    """IPython asks an object for ``_repr_png_``."""
    figure = pl.compare({"a": Y, "b": -Y}, Y[:, 0] > 0, {"a": Y[:, 0], "b": Y[:, 1]})
    content = figure._repr_png_()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    from matplotlib.image import imread

    picture = imread(io.BytesIO(content))
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.01  # not a white page
    assert pickle.loads(pickle.dumps(figure))._repr_png_()[:4] == b"\x89PNG"


def test_ipython_shows_the_figure():
    formatters = pytest.importorskip("IPython.core.formatters", reason="asks IPython what it would show")
    shown, _ = formatters.DisplayFormatter().format(pl.compare({"a": Y}))
    assert "image/png" in shown


def test_drawing_loads_no_pyplot():
    code = (
        "import sys, numpy; from drsne import pl; "
        "pl.compare({'a': numpy.eye(9)[:, :2]})._repr_png_(); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((Y,), TypeError, r"maps must be a mapping.*got an array of shape \(60, 2\).*Y}"),
        (([Y, Y],), TypeError, "maps must be a mapping.*got list"),
        (({},), ValueError, "maps must have at least one"),
        (({"a": Y[:, 0]},), ValueError, r"maps must have shape \(n_samples, 2\).*'a' has shape \(60,\)"),
        (({"a": Y}, [1, 2]), ValueError, r"labels must .* 60 .*got shape \(2,\)"),
        (({"a": Y}, None, Y[:, 0]), TypeError, "concentration must be a mapping.*got ndarray"),
        (({"a": Y, "b": Y}, None, {"a": Y[:, 0]}), ValueError, "concentration must .* none for 'b'"),
    ],
)
def test_wrong_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        pl.compare(*arguments)
