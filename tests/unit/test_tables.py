"""What is detected in text files, which columns are data, and files that appear only when they are complete."""

from __future__ import annotations

import gzip
import os
import shlex
import threading

import numpy as np
import pytest
from covering import each_value

from drsne.io.writing import replacing

pd = pytest.importorskip("pandas", reason="tables are read with pandas")

from drsne.io import tables  # noqa: E402

X = np.random.default_rng(0).normal(size=(12, 3))


def read(tmp_path, text, **options):
    path = tmp_path / "x.csv"
    path.write_text(text)
    return tables.read(path, **options)


@each_value({"names": [["0", "1", "2"], ["1", "2", "3"], ["a", "b", "c"], ["1a", "2b", "3c"]], "index": [False, True]})
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


@each_value(
    {
        "header": [True, False],
        "separator, decimal": [(each, sign) for each in ",\t;| " for sign in ".," if each != sign],
    }
)
def test_the_separator_and_the_decimal_sign_are_found(tmp_path, separator, header, decimal):
    frame = pd.DataFrame(X.round(3), columns=list("abc"))
    text = frame.to_csv(index=False, header=header, decimal=decimal, sep=separator)
    table = read(tmp_path, text)
    np.testing.assert_array_equal(table.X, X.round(3))
    assert table.columns == (list("abc") if header else ["x1", "x2", "x3"])


@pytest.mark.parametrize(
    ("text", "shape", "others"),
    [
        ("1,5;2,5;3,5\n" * 4, (4, 3), []),
        ("1,5;2;3,5\n4;5,5;6\n" * 4, (8, 3), []),
        ("name;value;size\nred, large;1,5;2\nblue, small;2,5;3\n", (2, 2), ["name"]),
        ("sample\ta\tb\nSample 1\t5.2\t3.1\nSample 2\t1.2\t2.1\n", (2, 2), ["sample"]),
        ("sample,a\nSample 1,5\nSample 2,7\n", (2, 1), ["sample"]),
        ("9, 2, 3\n4, 5, 6\n7, 8, 9\n", (3, 3), []),
        ("a b\nr1 1,5 2,5\nr2 3,5 4,5\n", (2, 2), []),
        ("1\t\t3\n4\t\t6\n", (2, 2), []),
    ],
)
def test_separators_that_could_be_mistaken(tmp_path, text, shape, others):
    drop = ["x2"] if "\t\t" in text else []
    table = read(tmp_path, text, drop=drop)
    assert table.X.shape == shape
    assert [name for name in table.others if name not in drop] == others


def test_wide_lines_are_read_whole(tmp_path):
    names = [f"a_long_name_of_a_column_{place}" for place in range(20_000)]
    values = np.arange(40_000).reshape(2, 20_000) + 0.5
    text = pd.DataFrame(values, columns=names).to_csv(index=False, sep=";", decimal=",")
    table = read(tmp_path, text, drop=names[1:])
    np.testing.assert_array_equal(table.X, values[:, :1])


def test_a_header_after_a_hash_is_used(tmp_path):
    np.savetxt(tmp_path / "x.txt", X, header="a b c")
    table = tables.read(tmp_path / "x.txt")
    assert table.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(table.X, X)
    assert tables.read(tmp_path / "x.txt", header=False).columns == ["x1", "x2", "x3"]
    assert read(tmp_path, "# made on Monday\n#id,a,b\n1,2,3\n4,5,7\n").columns == ["id", "a", "b"]
    assert read(tmp_path, "# two words\n9,2,3\n4,5,7\n").columns == ["x1", "x2", "x3"]


@pytest.mark.parametrize("text", ["a,b\n1,2,3,4\n5,6,7,8\n", ",a,b\nr1,1,2,3\nr2,4,5,6\n", "title\na,b,c\n1,2,3\n"])
def test_a_header_with_too_few_names_is_refused(tmp_path, text):
    with pytest.raises(tables.TableError, match=r"line 2 has \d fields, but line 1 has \d"):
        read(tmp_path, text)


@pytest.mark.parametrize("header", ["a,b", "a,b,", ""])
def test_separators_at_the_end_of_lines_are_ignored(tmp_path, header):
    table = read(tmp_path, f"{header}\n" * bool(header) + "1,2,\n3,4,\n5,7,\n")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 7]])
    assert table.columns == (["a", "b"] if header else ["x1", "x2"])
    assert table.index is None


def test_names_of_rows_and_separators_at_the_end(tmp_path):
    for header in (",a,b", ",a,b,"):
        table = read(tmp_path, f"{header}\nr1,1,2,\nr2,3,4,\n")
        np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
        assert list(table.index) == ["r1", "r2"]


def test_a_late_value_after_the_last_name_is_refused(tmp_path):
    text = "a,b\n" + "1,2,\n" * 150 + "1,2,3\n"
    with pytest.raises(tables.TableError, match="line 152 has 3 fields"):
        read(tmp_path, text)


@each_value({"decimal": [".", ","], "n": [3, 9, 10, 40]})
def test_one_wrong_value_is_a_mistake(tmp_path, n, decimal):
    values = [f"{row}{decimal}5;{row}" for row in range(n)]
    values[1] = "oops;1"
    with pytest.raises(tables.TableError, match="line 3, column 'a': 'oops' is not a number"):
        read(tmp_path, "a;b\n" + "\n".join(values) + "\n")


def test_mostly_text_is_text(tmp_path):
    table = read(tmp_path, "a,b\n" + "1,1\nx,2\ny,4\nz,7\n" * 5)
    assert table.columns == ["b"]
    assert any("text column: 'a'" in note for note in table.notes)


def test_booleans_with_gaps_are_numbers(tmp_path):
    table = read(tmp_path, "a,b\nTrue,1\n,2\nFalse,5\n", skip_missing=True)
    np.testing.assert_array_equal(table.X, [[1, 1], [0, 5]])


def test_advice_can_be_pasted(tmp_path):
    names = ["my column", "it's", "a,b", "c", "d", "e", "f"]
    text = pd.DataFrame([[np.nan] * 7 + [1.0], [1.0] * 8], columns=[*names, "good"]).to_csv(index=False)
    with pytest.raises(tables.TableError) as caught:
        read(tmp_path, text)
    words = shlex.split(str(caught.value).partition("--drop ")[2])
    assert words[0].rstrip(",") == 'my column,it\'s,"a,b",c,d,e,f'
    assert "..." not in str(caught.value)


def test_a_pipe_is_read_once(tmp_path):
    receiving, sending = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(sending, b"a,b\n1,2\n3,4\n5,9\n"), os.close(sending)))
    writer.start()
    table = tables.read(f"/dev/fd/{receiving}")
    writer.join()
    os.close(receiving)
    assert table.X.shape == (3, 2)
    os.mkfifo(tmp_path / "x.csv")
    text = pd.DataFrame(X).to_csv(index=False).encode()
    writer = threading.Thread(target=(tmp_path / "x.csv").write_bytes, args=(text,))
    writer.start()
    source = tables.Source(tmp_path / "x.csv")
    source.check()
    assert source.start.startswith(b"0,1,2")
    np.testing.assert_array_equal(tables.read(source).X, X)
    writer.join()


def test_compressed_text(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(pd.DataFrame(X).to_csv(index=False).encode()))
    np.testing.assert_array_equal(tables.read(tmp_path / "x.csv.gz").X, X)


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
