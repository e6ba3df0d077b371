"""The commands that read and write files of users, run as a user would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the commands read files with pandas")
pytest.importorskip("pyarrow", reason="Parquet and Feather need pyarrow")
pytest.importorskip("matplotlib", reason="--plot needs matplotlib")

pytestmark = pytest.mark.slow
NPY = b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (900, 3), }"
FAST = ["--perplexity", "8", "--neighbors", "8", "--iterations", "60", "--jobs", "1"]
NAMES = ["length", "width", "height"]


def drsne(*words, folder, stdin=None, env=None):
    """Run a command in a folder, and return its exit code, output and errors."""
    done = subprocess.run(
        [sys.executable, "-m", "drsne", *map(str, words)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        timeout=300,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def flowers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) * (1, 2, 3), columns=NAMES)
    frame["species"] = np.where(np.arange(n) % 2, "iris", "rosa")
    return frame


@pytest.fixture
def folder(tmp_path):
    flowers().to_csv(tmp_path / "flowers.csv", index=False)
    return tmp_path


def listed(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# Good input.


def test_from_a_csv_to_everything_with_one_command(folder):
    words = ["flowers.csv", "-o", "map.csv", "--label", "species", "--plot", "map.png", "--explore", "map.html"]
    code, out, err = drsne("embed", *words, "--model", "m.drsne", "--scale", *FAST, folder=folder)
    assert code == 0, err
    assert out == ""  # progress and notes are on standard error
    frame = pd.read_csv(folder / "map.csv")
    assert list(frame) == ["drsne1", "drsne2", "concentration_data", "concentration_map", "species"]
    assert list(frame["species"]) == list(flowers()["species"])
    assert np.isfinite(frame.iloc[:, :4]).all().all()
    assert (folder / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert "<html" in (folder / "map.html").read_text()[:500].lower()
    assert "Read 60 rows and 4 columns, separated by commas, with a header." in err
    # New rows: the same rows get their places, and other columns do not matter.
    shuffled = flowers()[["species", "height", "length", "width"]]
    shuffled.to_parquet(folder / "new.parquet")
    code, out, err = drsne("transform", "m.drsne", "new.parquet", "-o", "-", "--label", "species", folder=folder)
    assert code == 0, err
    (folder / "placed.csv").write_text(out)
    placed = pd.read_csv(folder / "placed.csv")
    np.testing.assert_allclose(placed[["drsne1", "drsne2"]], frame[["drsne1", "drsne2"]], rtol=1e-6)
    assert (placed["novelty"] == 0).all()
    # Scores of the map, as text and as JSON.
    code, out, err = drsne("evaluate", "flowers.csv", "map.csv", "--label", "species", "--scale", folder=folder)
    assert code == 0, err
    assert "trustworthiness" in out
    code, out, err = drsne("evaluate", "flowers.csv", "map.csv", "--scale", "--json", "--quiet", folder=folder)
    assert code == 0, err
    assert 0.5 < json.loads(out)["trustworthiness"] <= 1


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "feather", "npy", "npz"])
def test_every_format_in_and_out(folder, ending):
    frame = flowers()
    name = f"in.{ending}"
    {
        "csv": lambda: frame.to_csv(folder / name, index=False),
        "tsv": lambda: frame.to_csv(folder / name, index=False, sep="\t"),
        "csv.gz": lambda: frame.to_csv(folder / name, index=False),
        "parquet": lambda: frame.to_parquet(folder / name),
        "feather": lambda: frame.to_feather(folder / name),
        "npy": lambda: np.save(folder / name, frame[NAMES].to_numpy()),
        "npz": lambda: np.savez(folder / name, X=frame[NAMES].to_numpy(), species=frame["species"].to_numpy(str)),
    }[ending]()
    label = [] if ending == "npy" else ["--label", "species"]
    code, _, err = drsne("embed", name, "-o", f"out.{ending}", *label, *FAST, folder=folder)
    assert code == 0, err
    out = folder / f"out.{ending}"
    if ending == "npy":
        assert np.load(out).shape == (60, 4)
        return
    if ending == "npz":
        found = pd.DataFrame(dict(np.load(out)))
    elif ending in ("parquet", "feather"):
        found = getattr(pd, f"read_{ending}")(out)
    else:
        found = pd.read_csv(out, sep="\t" if ending == "tsv" else ",")
    assert list(found) == ["drsne1", "drsne2", "concentration_data", "concentration_map", "species"]
    assert list(found["species"]) == list(frame["species"])


def test_standard_input_and_output(folder):
    text = flowers().to_csv(index=False, sep=";", decimal=",").encode()
    code, out, err = drsne("embed", "-", "-o", "-", *FAST, folder=folder, stdin=text)
    assert code == 0, err
    assert "separated by semicolons, with a header, with decimal commas" in err
    assert "Left out 1 text column: 'species'." in err
    assert len(out.splitlines()) == 61


def test_row_names_are_kept(folder):
    frame = flowers()
    frame.index = [f"plant {row}" for row in range(len(frame))]
    frame.to_csv(folder / "named.csv")
    code, _, err = drsne("embed", "named.csv", "-o", "out.csv", *FAST, folder=folder)
    assert code == 0, err
    assert list(pd.read_csv(folder / "out.csv")["name"]) == list(frame.index)


def test_h5ad_keeps_everything_else(folder):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    rng = np.random.default_rng(0)
    adata = anndata.AnnData(rng.poisson(1.0, (60, 80)).astype(np.float32))
    adata.obs["kind"] = pd.Categorical(np.where(np.arange(60) % 2, "a", "b"))
    adata.obsm["X_pca"] = rng.normal(size=(60, 10))
    adata.layers["counts"] = adata.X.copy()
    adata.uns["notes"] = {"source": "simulated"}
    adata.write_h5ad(folder / "cells.h5ad")
    code, _, err = drsne("embed", "cells.h5ad", "-o", "out.h5ad", "--label", "kind", *FAST, folder=folder)
    assert code == 0, err
    found = anndata.read_h5ad(folder / "out.h5ad")
    assert found.obsm["X_drsne"].shape == (60, 2)
    assert {"kind", "drsne_concentration", "drsne_concentration_map"} <= set(found.obs)
    assert found.uns["notes"] == {"source": "simulated"}
    np.testing.assert_array_equal(found.layers["counts"], adata.layers["counts"])
    np.testing.assert_array_equal(found.X, adata.X)
    assert list(found.obs["kind"].cat.categories) == ["a", "b"]
    code, _, err = drsne("embed", "flowers.csv", "-o", "new.h5ad", "--label", "species", *FAST, folder=folder)
    assert code == 0, err
    made = anndata.read_h5ad(folder / "new.h5ad")
    assert list(made.var_names) == NAMES
    assert list(made.obs["species"]) == list(flowers()["species"])


def test_a_path_and_pages_of_maps(folder):
    code, _, err = drsne(
        "path", "flowers.csv", "--weights", "0,1,3", "--explore", "page.html", "--plot", "curve.png",
        "-o", "maps.csv", "--label", "species", *FAST, folder=folder,
    )  # fmt: skip
    assert code == 0, err
    assert "drsne2_w3" in list(pd.read_csv(folder / "maps.csv"))
    assert (folder / "curve.png").read_bytes()[:4] == b"\x89PNG"
    frame = pd.DataFrame({"UMAP_1": np.arange(60.0), "UMAP_2": np.arange(60.0) ** 2, "kind": ["a", "b"] * 30})
    frame.to_csv(folder / "umap.csv", index=False)
    np.save(folder / "other.npy", np.random.default_rng(0).normal(size=(60, 2)))
    words = ["umap.csv", "other.npy", "--label", "kind", "-o", "compare.html"]
    code, _, err = drsne("explore", *words, folder=folder)
    assert code == 0, err
    assert (folder / "compare.html").stat().st_size > 100_000


def test_rows_with_missing_values_can_be_left_out(folder):
    frame = flowers()
    frame.loc[[3, 10], "width"] = np.nan
    frame.to_csv(folder / "gaps.csv", index=False)
    code, _, err = drsne("embed", "gaps.csv", "-o", "out.csv", "--skip-missing", *FAST, folder=folder)
    assert code == 0, err
    assert "Left out 2 rows with missing values." in err
    assert [row for row in range(60) if row not in (3, 10)] == list(pd.read_csv(folder / "out.csv")["row"])


def test_an_old_encoding_is_read(folder):
    text = flowers().to_csv(index=False).replace("length", "L\u00e4nge").encode("cp1252")
    (folder / "old.csv").write_bytes(text)
    code, _, err = drsne("embed", "old.csv", "-o", "out.csv", *FAST, folder=folder)
    assert code == 0, err
    assert "Windows-1252" in err


def test_quiet_shows_nothing(folder):
    code, out, err = drsne("embed", "flowers.csv", "-o", "out.csv", "--quiet", *FAST, folder=folder)
    assert (code, out, err) == (0, "", "")


# Bad input. Each case: how the file is made, further words, and parts of the message.
RAGGED = "a,b\n1,2\n3\n4,5\n"
LONG = "a,b\n1,2\n3,4,5\n"
TEXT_INSIDE = "a,b\n" + "1,2\n" * 30 + "oops,4\n" + "5,6\n" * 5
MISSING = "age,income\n" + "1,2\n" * 20 + ",3\n,4\n5,NA\n"


def excel(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")


BAD = {
    "missing_file": (None, "nothing.csv", [], ["does not exist"]),
    "similar_name": (None, "flower.csv", [], ["does not exist", "Did you mean 'flowers.csv'?"]),
    "empty": (b"", "x.csv", [], ["x.csv is empty"]),
    "only_blank_lines": (b"\n\n\n", "x.csv", [], ["no lines with values"]),
    "only_a_header": (b"a,b,c\n", "x.csv", [], ["header but no rows"]),
    "short_row": (RAGGED.encode(), "x.csv", [], ["line 3 has 1 field", "line 1 has 2"]),
    "long_row": (LONG.encode(), "x.csv", [], ["line 3 has 3 fields"]),
    "text_among_numbers": (TEXT_INSIDE.encode(), "x.csv", [], ["line 32, column 'a'", "'oops'", "--drop a"]),
    "missing_values": (MISSING.encode(), "x.csv", [], ["2 in 'age', 1 in 'income'", "3 rows", "--skip-missing"]),
    "infinite": (b"a,b\n1,2\ninf,3\n4,5\n", "x.csv", [], ["infinite values: 1 in 'a'"]),
    "only_text": (b"a,b\nx,y\nz,w\nu,v\n", "x.csv", [], ["no columns of numbers", "'a', 'b'"]),
    "binary": (bytes(range(256)) * 4, "x.csv", [], ["binary file"]),
    "excel": (excel, "x.csv", [], ["Excel"]),
    "excel_extension": (excel, "x.xlsx", [], ["Excel"]),
    "pdf": (b"%PDF-1.7 ...", "x.csv", [], ["PDF"]),
    "picture": (b"\x89PNG\r\n\x1a\n....", "x.csv", [], ["PNG"]),
    "pickle": (b"\x80\x04\x95abc", "x.csv", [], ["pickle"]),
    "unknown_extension": (b"1,2\n3,4\n", "x.dat", [], ["must end with one of", ".parquet"]),
    "parquet_named_csv": (lambda path: flowers().to_parquet(path), "x.csv", [], ["Parquet", "--format parquet"]),
    "csv_named_parquet": (b"a,b\n1,2\n", "x.parquet", [], ["not a Parquet file"]),
    "damaged_parquet": (b"PAR1" + b"\0" * 50 + b"PAR1", "x.parquet", [], ["damaged"]),
    "damaged_feather": (b"ARROW1\0\0" + b"abc" * 9, "x.feather", [], ["damaged"]),
    "damaged_gzip": (b"\x1f\x8b\x08\0" + b"abc" * 30, "x.csv.gz", [], ["damaged", "unpacked"]),
    "damaged_npy": (NPY, "x.npy", [], ["damaged"]),
    "objects_in_npy": (lambda path: np.save(path, np.array([{}])), "x.npy", [], ["Python objects"]),
    "a_cube": (lambda path: np.save(path, np.zeros((3, 4, 5))), "x.npy", [], ["shape (3, 4, 5)", "reshape"]),
    "text_in_npy": (lambda path: np.save(path, np.array([["a", "b"]])), "x.npy", [], ["type <U1"]),
    "nothing_in_npy": (lambda path: np.save(path, np.zeros((0, 5))), "x.npy", [], ["shape (0, 5)"]),
    "several_matrices": (
        lambda path: np.savez(path, p=np.zeros((9, 2)), q=np.zeros((9, 3))), "x.npz", [], ["several", "--array p"],
    ),
    "unknown_array": (lambda path: np.savez(path, p=np.eye(9)), "x.npz", ["--array", "z"], ["--array", "'z'", "'p'"]),
    "no_matrix": (lambda path: np.savez(path, p=np.zeros(9)), "x.npz", [], ["no matrix"]),
    "damaged_h5ad": (b"\x89HDF\r\n\x1a\n" + b"\0" * 100, "x.h5ad", [], ["damaged"]),
    "unknown_label": (None, "flowers.csv", ["--label", "specie"], ["--label", "Did you mean 'species'?"]),
    "unknown_drop": (None, "flowers.csv", ["--drop", "color"], ["--drop", "'color'", "'length'"]),
    "everything_dropped": (None, "flowers.csv", ["--drop", "length,width,height"], ["no columns of numbers"]),
    "unknown_metric": (None, "flowers.csv", ["--metric", "euclidian"], ["Did you mean 'euclidean'?"]),
    "bad_weight": (None, "flowers.csv", ["--weight", "much"], ["weight must be a number", "'much'"]),
    "negative_weight": (None, "flowers.csv", ["--weight", "-1"], ["density_weight", "-1"]),
    "perplexity": (None, "flowers.csv", ["--perplexity", "0"], ["perplexity"]),
    "unknown_format": (None, "flowers.csv", ["--format", "cvs"], ["Did you mean 'csv'?"]),
    "two_rows": (b"a,b\n1,2\n3,4\n", "x.csv", [], ["minimum of 3"]),
    "a_folder": (lambda path: path.mkdir(), "x.csv", [], ["is a folder"]),
    "open_quote": (b'a,b\n1,2\n"3,4\n5,6\n', "x.csv", [], ["x.csv"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line_and_loses_nothing(folder, case):
    made, name, words, parts = BAD[case]
    if callable(made):
        made(folder / name)
        stray = folder / f"{name}.npy"
        if stray.exists():
            stray.rename(folder / name)
    elif made is not None:
        (folder / name).write_bytes(made)
    before = listed(folder)
    code, out, err = drsne("embed", name, "-o", "out.csv", "--plot", "out.png", "--quiet", *words, folder=folder)
    assert code == 1, (out, err)
    assert err.startswith("drsne: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert "unexpected" not in err
    for part in parts:
        assert part in err
    assert out == ""
    assert listed(folder) == before


BAD_OUTPUT = {
    "exists": (["-o", "old.csv"], ["old.csv exists already", "--force"]),
    "is_the_input": (["-o", "flowers.csv", "--force"], ["must not be the input"]),
    "twice": (["--plot", "a.png", "--explore", "a.png", "--force"], ["a.png must end with .html"]),
    "same_file": (["--explore", "a.html", "--model", "a.html"], ["same file as --explore"]),
    "no_folder": (["-o", "nowhere/out.csv"], ["does not exist", "Create it first"]),
    "unknown_extension": (["-o", "out.xyz"], ["must end with one of .csv"]),
    "picture": (["--plot", "out.gif"], ["must end with .png"]),
    "nothing": ([], ["Nothing would be written"]),
}


@pytest.mark.parametrize("case", BAD_OUTPUT)
def test_bad_output_is_said_before_the_fit(folder, case):
    (folder / "old.csv").write_text("precious")
    words, parts = BAD_OUTPUT[case]
    before = listed(folder)
    code, _, err = drsne("embed", "flowers.csv", *words, folder=folder)
    assert code == 1, err
    assert err.count("\n") == 1, err
    for part in parts:
        assert part in err
    assert listed(folder) == before


def test_force_replaces_and_leaves_no_temporary_file(folder):
    (folder / "old.csv").write_text("old")
    code, _, err = drsne("embed", "flowers.csv", "-o", "old.csv", "--force", *FAST, folder=folder)
    assert code == 0, err
    assert len((folder / "old.csv").read_text().splitlines()) == 61
    assert {path.name for path in folder.iterdir()} == {"flowers.csv", "old.csv"}


def test_an_unreadable_file(folder):
    if os.geteuid() == 0:
        pytest.skip("the administrator may read every file")
    (folder / "flowers.csv").chmod(0)
    code, _, err = drsne("embed", "flowers.csv", "-o", "out.csv", folder=folder)
    assert code == 1
    assert "permission denied" in err


def test_debug_shows_the_traceback(folder):
    code, _, err = drsne("embed", "nothing.csv", "-o", "out.csv", "--debug", folder=folder)
    assert code == 1
    assert "Traceback" in err


def test_a_model_of_other_columns(folder):
    code, _, err = drsne("embed", "flowers.csv", "--model", "m.drsne", *FAST, folder=folder)
    assert code == 0, err
    flowers().drop(columns="width").to_csv(folder / "less.csv", index=False)
    code, _, err = drsne("transform", "m.drsne", "less.csv", "-o", "out.csv", folder=folder)
    assert code == 1
    assert "lacks 1 of the 3 columns of the model: 'width'" in err
    code, _, err = drsne("transform", "flowers.csv", "flowers.csv", "-o", "out.csv", folder=folder)
    assert code == 1
    assert "not a model file" in err
    assert not (folder / "out.csv").exists()


def test_a_map_with_other_rows(folder):
    np.save(folder / "map.npy", np.zeros((59, 2)))
    code, _, err = drsne("evaluate", "flowers.csv", "map.npy", folder=folder)
    assert code == 1
    assert "has 59 rows" in err


def test_doctor(folder):
    code, out, err = drsne("doctor", folder=folder)
    assert code == 0, err
    for part in ("drsne", "Python", "numba", "cores", "GB free", "works"):
        assert part in out


def test_demo(folder):
    code, _, err = drsne("demo", "--folder", "demo", folder=folder)
    assert code == 0, err
    assert {path.name for path in (folder / "demo").iterdir()} == {"digits.csv", "digits.png", "digits.html"}
    code, _, err = drsne("demo", "--folder", "demo", folder=folder)
    assert code == 1
    assert "exists already" in err


@pytest.mark.parametrize("command", ["embed", "transform", "evaluate", "path", "explore", "demo", "doctor"])
def test_help_has_examples(folder, command):
    code, out, _ = drsne(command, "--help", folder=folder)
    assert code == 0
    assert "examples:\n  drsne" in out
    assert "Exit codes" in out
