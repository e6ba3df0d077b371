"""What is detected in text files, and files that appear only when they are complete."""

from __future__ import annotations

import numpy as np
import pytest

from drsne.replacing import replacing

pd = pytest.importorskip("pandas", reason="tables are read with pandas")

from drsne import tables  # noqa: E402

X = np.random.default_rng(0).normal(size=(12, 3))


def read(tmp_path, text, **options):
    path = tmp_path / "x.csv"
    path.write_text(text)
    return tables.read(path, **options)


@pytest.mark.parametrize("names", [["0", "1", "2"], ["1", "2", "3"], ["a", "b", "c"], ["1a", "2b", "3c"]])
@pytest.mark.parametrize("index", [False, True])
def test_a_header_is_found(tmp_path, names, index):
    table = read(tmp_path, pd.DataFrame(X, columns=names).to_csv(index=index))
    assert table.columns == names
    np.testing.assert_array_equal(table.X, X)
    assert (table.index is not None) == index


def test_a_first_row_of_values_is_not_a_header(tmp_path):
    frame = pd.DataFrame(X)
    frame["kind"] = "a"
    table = read(tmp_path, frame.to_csv(index=False, header=False))
    np.testing.assert_array_equal(table.X, X)
    assert table.columns == ["x1", "x2", "x3"]
    assert list(table.others) == ["x4"]


def test_the_user_can_say_whether_there_is_a_header(tmp_path):
    text = "2001,2002\n1,2\n3,4\n5,6\n"
    assert read(tmp_path, text).X.shape == (4, 2)
    assert read(tmp_path, text, header=True).columns == ["2001", "2002"]


def test_a_file_of_r_has_row_names_without_a_header(tmp_path):
    table = read(tmp_path, "a b\nr1 1 2\nr2 3 4\nr3 5 6\n")
    assert table.columns == ["a", "b"]
    assert list(table.index) == ["r1", "r2", "r3"]


def test_a_column_that_counts_the_rows_is_noted(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.insert(0, "id", np.arange(12) + 1)
    assert any("--drop id" in note for note in read(tmp_path, frame.to_csv(index=False)).notes)
    assert not any("counts" in note for note in read(tmp_path, frame.to_csv(index=False), drop=["id"]).notes)


def test_a_file_is_replaced_only_when_it_is_complete(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def interrupted():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["x.txt"]
