"""The commands that read and write files of users, in this process, and a few of them as a user would run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from covering import in_one_test

pd = pytest.importorskip("pandas", reason="the commands read files with pandas")
pytest.importorskip("pyarrow", reason="Parquet and Feather need pyarrow")
pytest.importorskip("matplotlib", reason="--plot needs matplotlib")

from flowers import FAST, NAMES, failed, flowers, runner, succeeded  # noqa: E402

pytestmark = pytest.mark.slow
NPY = b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (900, 3), }"


def drsne_process(*words, folder, stdin=None):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "drsne", *map(str, words)]
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flowers().to_csv(tmp_path / "flowers.csv", index=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    return runner(capsys)


def fails_with_one_line(folder, run, *words, parts):
    """Check that a command prints one line that has these parts, and changes no file."""
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    failed(run(*words, "--quiet"), *parts)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


# Good input.


def test_from_a_csv_to_everything_with_one_command(folder, run):
    words = ["flowers.csv", "-o", "map.csv", "--label", "species", "--plot", "map.png", "--explore", "map.html"]
    code, out, err = drsne_process("embed", *words, "--model", "m.drsne", "--scale", *FAST, folder=folder)
    assert code == 0, err
    assert out == ""  # progress and notes are on standard error
    frame = pd.read_csv(folder / "map.csv")
    assert list(frame) == ["drsne1", "drsne2", "concentration_data", "concentration_map", "contrast", "species"]
    assert list(frame["species"]) == list(flowers()["species"])
    assert np.isfinite(frame.iloc[:, :5]).all().all()
    assert (folder / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert "<html" in (folder / "map.html").read_text()[:500].lower()
    assert "Read 60 rows and 4 columns, separated by commas, with a header." in err
    # New rows: the same rows get their places, and other columns do not matter.
    shuffled = flowers()[["species", "height", "length", "width"]]
    shuffled.to_parquet(folder / "new.parquet")
    out, _ = succeeded(run("transform", "m.drsne", "new.parquet", "-o", "-", "--label", "species"))
    (folder / "placed.csv").write_text(out)
    placed = pd.read_csv(folder / "placed.csv")
    np.testing.assert_allclose(placed[["drsne1", "drsne2"]], frame[["drsne1", "drsne2"]], rtol=1e-6)
    assert (placed["novelty"] == 0).all()
    # Scores of the map, as text and as JSON.
    out, _ = succeeded(run("evaluate", "flowers.csv", "map.csv", "--label", "species", "--scale"))
    assert "trustworthiness" in out
    out, _ = succeeded(run("evaluate", "flowers.csv", "map.csv", "--scale", "--json", "--quiet"))
    assert 0.5 < json.loads(out)["trustworthiness"] <= 1


def test_standard_input_and_output(folder):
    text = flowers().to_csv(index=False, sep=";", decimal=",").encode()
    code, out, err = drsne_process("embed", "-", "-o", "-", *FAST, folder=folder, stdin=text)
    assert code == 0, err
    assert "separated by semicolons, with a header, with decimal commas" in err
    assert "Left out 1 text column: 'species'." in err
    assert len(out.splitlines()) == 61


def full_object(anndata):
    """Return an AnnData object with everything that it can hold."""
    rng = np.random.default_rng(0)
    adata = anndata.AnnData(sp.csr_matrix(rng.poisson(1.0, (60, 80)).astype(np.float32)))
    adata.obs_names = [f"cell{row}" for row in range(60)]
    adata.var_names = [f"gene{place}" for place in range(80)]
    adata.raw = adata.copy()
    adata.obs["kind"] = pd.Categorical(np.where(np.arange(60) % 2, "a", "b"), categories=["b", "a", "unused"])
    adata.obs["batch"] = np.where(np.arange(60) % 3, "first", "second")
    adata.obs["count"], adata.obs["depth"] = np.arange(60), rng.normal(size=60)
    adata.var["name"] = [f"name {place}" for place in range(80)]
    adata.obsm["X_pca"] = rng.normal(size=(60, 10))
    adata.obsp["distances"] = sp.csr_matrix(np.eye(60))
    adata.varm["loadings"] = rng.normal(size=(80, 10))
    adata.varp["similarity"] = sp.csr_matrix(np.eye(80))
    adata.layers["counts"] = adata.X.copy()
    adata.uns["notes"] = {"source": "simulated", "numbers": np.arange(3), "kind_colors": np.array(["#000", "#fff"])}
    return adata


def stored(path):
    """Return the attributes, the type and the values of everything in an HDF5 file."""
    h5py = pytest.importorskip("h5py", reason="H5AD files need h5py")
    found = {}

    def note(name, item):
        values = (item.dtype.str, item[()]) if isinstance(item, h5py.Dataset) else None
        found[name] = {key: value for key, value in item.attrs.items() if key != "column-order"}, values

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def test_h5ad_keeps_everything_else(folder, run):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    full_object(anndata).write_h5ad(folder / "cells.h5ad")
    succeeded(run("embed", "cells.h5ad", "-o", "out.h5ad", "--label", "kind", *FAST))
    before, found = stored("cells.h5ad"), stored("out.h5ad")
    added = [name for name in found if name not in before]
    assert "obsm/X_drsne" in added
    assert [name for name in added if "drsne" not in name] == []
    np.testing.assert_equal({name: found[name] for name in before}, before)
    order = ["kind", "batch", "count", "depth", "drsne_concentration", "drsne_concentration_map"]
    assert list(anndata.read_h5ad("out.h5ad").obs) == order


def test_a_table_becomes_an_h5ad_file(folder, run):
    anndata = pytest.importorskip("anndata", reason="H5AD files need anndata")
    succeeded(run("embed", "flowers.csv", "-o", "new.h5ad", "--label", "species", *FAST))
    made = anndata.read_h5ad(folder / "new.h5ad")
    assert list(made.var_names) == NAMES
    assert list(made.obs["species"]) == list(flowers()["species"])
    np.testing.assert_allclose(made.X, flowers()[NAMES])


# Bad input. Each case: how the file is made, further words, and parts of the message.
RAGGED = "a,b\n1,2\n3\n4,5\n"
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
    "damaged_h5ad": (b"\x89HDF\r\n\x1a\n" + b"\0" * 100, "x.h5ad", [], ["damaged"]),
    "unknown_label": (None, "flowers.csv", ["--label", "specie"], ["--label", "Did you mean 'species'?"]),
    "unknown_drop": (None, "flowers.csv", ["--drop", "color"], ["--drop", "'color'", "'length'"]),
    "everything_dropped": (None, "flowers.csv", ["--drop", "length,width,height"], ["no columns of numbers"]),
    "unknown_format": (None, "flowers.csv", ["--format", "cvs"], ["Did you mean 'csv'?"]),
    "two_rows": (b"a,b\n1,2\n3,4\n", "x.csv", [], ["minimum of 3"]),
    "a_folder": (lambda path: path.mkdir(), "x.csv", [], ["is a folder"]),
    "open_quote": (b'a,b\n1,2\n"3,4\n5,6\n', "x.csv", [], ["line 3", "quotation mark"]),
}  # fmt: skip


@in_one_test("case", BAD)
def test_bad_input_gives_one_line_and_loses_nothing(tmp_path, monkeypatch, run, case):
    made, name, words, parts = BAD[case]
    folder = tmp_path / case
    folder.mkdir()
    monkeypatch.chdir(folder)
    flowers().to_csv(folder / "flowers.csv", index=False)
    if callable(made):
        made(folder / name)
    elif made is not None:
        (folder / name).write_bytes(made)
    fails_with_one_line(folder, run, "embed", name, "-o", "out.csv", "--plot", "out.png", *words, parts=parts)


BAD_OUTPUT = {
    "exists": (["-o", "old.csv"], ["old.csv exists already", "--force"]),
    "is_the_input": (["-o", "flowers.csv", "--force"], ["must not be the input"]),
    "wrong_page": (["--plot", "a.png", "--explore", "a.png", "--force"], ["a.png must end with one of .html"]),
    "twice": (["-o", "a.csv", "--model", "./a.csv", "--force"], ["--model must not be the same file as --output"]),
    "same_file": (["--explore", "a.html", "--model", "a.html"], ["same file as --explore"]),
    "no_folder": (["-o", "nowhere/out.csv"], ["does not exist", "Create it first"]),
    "unknown_extension": (["-o", "out.xyz"], ["must end with one of .csv"]),
    "picture": (["--plot", "out.gif"], ["must end with one of .png"]),
}


@in_one_test("case", BAD_OUTPUT)
def test_bad_output_is_said_before_the_fit(folder, run, case):
    (folder / "old.csv").write_text("precious")
    words, parts = BAD_OUTPUT[case]
    fails_with_one_line(folder, run, "embed", "flowers.csv", *words, parts=parts)


# Bad input of the other commands. There are also "model.drsne", a map "map.csv" and a text file "notes.csv".
BAD_OTHERS = {
    "no_new_rows": (["transform", "model.drsne", "nothing.csv", "-o", "o.csv"], ["nothing.csv does not exist"]),
    "no_model": (["transform", "nothing.drsne", "flowers.csv", "-o", "o.csv"], ["nothing.drsne does not exist"]),
    "not_a_model": (["transform", "flowers.csv", "flowers.csv", "-o", "o.csv"], ["not a model file"]),
    "damaged_model": (["transform", "damaged.drsne", "flowers.csv", "-o", "o.csv"], ["damaged"]),
    "other_columns": (["transform", "model.drsne", "map.csv", "-o", "o.csv"], ["lacks 3 of the 3 columns", "'length'"]),
    "path_of_text": (["path", "notes.csv", "-o", "o.csv"], ["no columns of numbers"]),
    "path_to_h5ad": (["path", "flowers.csv", "-o", "o.h5ad"], ["must end with one of .csv"]),
    "scores_of_nothing": (["evaluate", "flowers.csv", "nothing.csv"], ["nothing.csv does not exist"]),
    "scores_of_text": (["evaluate", "flowers.csv", "notes.csv"], ["not clear which are the map"]),
    "scores_of_fewer_rows": (["evaluate", "flowers.csv", "short.npy"], ["has 59 rows", "has 60"]),
    "scores_of_a_model": (["evaluate", "flowers.csv", "model.drsne"], ["a model file of drsne"]),
    "page_of_nothing": (["explore", "nothing.csv"], ["nothing.csv does not exist"]),
    "page_of_data": (["explore", "wide.csv"], ["not clear which are the map", "--map-columns"]),
    "page_of_other_rows": (["explore", "map.csv", "short.npy"], ["has 59 rows", "has 60"]),
    "page_of_gaps": (["explore", "gaps.csv"], ["1 in 'drsne1'"]),
    "page_with_an_unknown_label": (["explore", "map.csv", "--label", "specie"], ["--label", "Did you mean 'species'?"]),
}  # fmt: skip


@pytest.fixture
def prepared(folder, run):
    """Return a folder with the files that BAD_OTHERS need. The tests do not change it."""
    succeeded(run("embed", "flowers.csv", "--model", "model.drsne", "-o", "map.csv", "--label", "species", *FAST))
    content = bytearray((folder / "model.drsne").read_bytes())
    content[len(content) // 2] ^= 255
    (folder / "damaged.drsne").write_bytes(content)
    (folder / "notes.csv").write_text("when,what\nMonday,rain\nTuesday,sun\nFriday,snow\n")
    np.save("short.npy", np.random.default_rng(0).normal(size=(59, 2)))
    pd.DataFrame(np.zeros((9, 5)), columns=list("abcde")).to_csv("wide.csv", index=False)
    frame = pd.read_csv("map.csv")
    frame.loc[4, "drsne1"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    return folder


@in_one_test("case", BAD_OTHERS)
def test_bad_input_of_other_commands_gives_one_line_and_writes_nothing(prepared, run, case):
    words, parts = BAD_OTHERS[case]
    fails_with_one_line(prepared, run, *words, parts=parts)


@pytest.mark.rotating(2)
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupt_keeps_what_is_finished(folder):
    # A program that runs in the background of a shell ignores interrupts unless it asks for them.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from drsne.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["path", "flowers.csv", "-o", "map.csv", *FAST, "--iterations", "60000", "--weights", "0,1"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        for line in process.stderr:  # one line for each tenth of the iterations
            if "kl=" in line:
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Interrupted after" in err
    assert "Wrote map.csv." in err
    frame = pd.read_csv(folder / "map.csv")
    assert len(frame) == 60
    assert np.isfinite(frame[[name for name in frame if name.startswith("drsne")]]).all().all()
