"""Commands and unsafe files: text that spreadsheets take for formulas, and links that lead to no file."""

from __future__ import annotations

import io

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the commands read files with pandas")

from drsne import cli  # noqa: E402

FAST = ["--perplexity", "8", "--neighbors", "8", "--iterations", "60", "--jobs", "1", "--quiet"]


def flowers():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["length", "width", "height"])


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with a table, and return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    flowers().to_csv("flowers.csv", index=False)
    return lambda *words: (cli.main([str(word) for word in words]), *capsys.readouterr())


@pytest.mark.parametrize("output", ["o.csv", "o.tsv.gz", "-"])
def test_formulas_for_spreadsheets_are_guarded(run, output):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    kinds = ["=1+1", "+a", "-b", "@c", "plain", "a=b", "-1.5", "'=d"]
    frame = flowers().assign(**{"=kind": np.resize(kinds, 60)})
    frame.index = pd.Index([f"@{row}" for row in range(60)], name="row")
    frame.to_parquet("formulas.parquet")

    def written(*options):
        code, out, err = run("embed", "formulas.parquet", "-o", output, "--label", "=kind", "--force", *FAST, *options)
        assert code == 0, err
        separator = "\t" if "tsv" in output else ","
        return pd.read_csv(io.StringIO(out) if output == "-" else output, sep=separator, dtype=str)

    usual, safe = written(), written("--spreadsheet-safe")
    assert list(usual["=kind"][:8]) == kinds
    assert list(usual["row"][:2]) == ["@0", "@1"]
    assert list(safe["'=kind"][:8]) == ["'=1+1", "'+a", "'-b", "'@c", "plain", "a=b", "-1.5", "'=d"]
    assert list(safe["row"][:2]) == ["'@0", "'@1"]
    numbers = ["drsne1", "drsne2", "concentration_data", "concentration_map", "contrast"]
    pd.testing.assert_frame_equal(safe[numbers], usual[numbers])


def test_only_text_is_made_safe_for_spreadsheets(run):
    for words in (("-o", "o.parquet"), ("-o", "o.npy"), ("--plot", "o.png")):
        code, _, err = run("embed", "flowers.csv", *words, "--spreadsheet-safe")
        assert code == 2
        assert "--spreadsheet-safe needs a CSV" in err


@pytest.mark.parametrize("target", ["gone.csv", "link.csv"])
def test_symbolic_links_that_lead_to_no_file(run, tmp_path, target):
    try:
        (tmp_path / "link.csv").symlink_to(target)
    except OSError:
        pytest.skip("this system has no symbolic links")
    for words in (
        ("embed", "link.csv", "-o", "o.csv"),
        ("transform", "link.csv", "flowers.csv", "-o", "o.csv"),
        ("evaluate", "flowers.csv", "link.csv", "--quiet"),
        ("explore", "link.csv", "-o", "o.html"),
    ):
        code, _, err = run(*words)
        assert code == 1
        assert err.startswith(f"drsne: link.csv is a symbolic link to {target}")
    code, _, err = run("embed", "flowers.csv", "-o", "link.csv")
    assert code == 1
    assert "link.csv exists already" in err
    assert run("embed", "flowers.csv", "-o", "link.csv", "--force", *FAST)[0] == 0
    assert len(pd.read_csv("link.csv")) == 60
