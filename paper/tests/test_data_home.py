"""The data home: downloads, conversions and everything that can go wrong with a file. No test uses the network."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import signal
import struct
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from at_hand import need

from drsne_paper import datasets
from drsne_paper.datasets import _cache, _download
from drsne_paper.datasets._formats import IDX_FILES
from drsne_paper.datasets._registry import find


class Web:
    """A local server: files by path, the requests so far, and an excess to state in their length."""

    def __init__(self):
        self.files, self.asked, self.extra_length = {}, [], 0
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.lstrip("/")
                web.asked.append(name)
                content = web.files.get(name)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"") + web.extra_length))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    source = Web()
    yield source
    source.close()


def stand_in(monkeypatch, name, **changes):
    """The dataset ``name`` with some fields changed, for one test."""
    changed = replace(find(name), **changes)
    monkeypatch.setattr(f"drsne_paper.datasets.{name}.DATASET", changed)
    return changed


def idx(array):
    """A gzipped idx file, written from its definition."""
    return gzip.compress(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes())


@pytest.fixture
def small_mnist(web, monkeypatch):
    """A source of six images, and the dataset that wants them: ``X`` (6, 784), ``y``."""
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (6, 28, 28), dtype=np.uint8), np.arange(6, dtype=np.uint8)
    parts = (images[:4], labels[:4], images[4:], labels[4:])
    web.files = {name: idx(part) for name, part in zip(IDX_FILES, parts, strict=True)}
    sha256 = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    urls = tuple(web.url + name for name in IDX_FILES)
    stand_in(monkeypatch, "mnist", n_samples=6, sha256=sha256, urls=urls)
    return images.reshape(6, 784), labels


def test_downloads_once_and_keeps_the_file(small_mnist, web, tmp_path, capsys):
    X, y = small_mnist
    home = tmp_path / "new" / "home"
    data = datasets.load("mnist", data_home=home)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    assert web.asked == list(IDX_FILES)
    assert [path.name for path in home.iterdir()] == ["mnist.npz"]
    assert "100%" in capsys.readouterr().err  # progress
    with np.load(home / "mnist.npz") as file:
        assert np.array_equal(file["X"], X)
        assert np.array_equal(file["y"], y)
    again = datasets.load("mnist", data_home=str(home))
    assert np.array_equal(again.X, X)
    assert len(web.asked) == 4
    state = next(s for s in datasets.states(home) if s.name == "mnist")
    assert (state.state, state.size) == ("in the data home", (home / "mnist.npz").stat().st_size)


def test_the_file_can_be_read_by_others(small_mnist, tmp_path):
    """Like any file of the user, unlike a temporary file."""
    (tmp_path / "plain").touch()
    datasets.load("mnist", data_home=tmp_path)
    assert (tmp_path / "mnist.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_shuttle_from_openml(web, monkeypatch, tmp_path):
    """OpenML's text of the real rows passes the real checksum."""
    need("shuttle")
    real = datasets.load("shuttle")
    header = "% a comment\n@RELATION shuttle\n" + "".join(f"@ATTRIBUTE A{i} REAL\n" for i in range(1, 10))
    lines = "\n".join(",".join(map(str, row)) for row in np.column_stack([real.X, real.y]).tolist())
    web.files["shuttle.arff"] = f"{header}@ATTRIBUTE class {{1,2,3,4,5,6,7}}\n\n@DATA\n{lines}\n".encode()
    stand_in(monkeypatch, "shuttle", urls=(web.url + "shuttle.arff",))
    data = datasets.load("shuttle", data_home=tmp_path)
    assert np.array_equal(data.X, real.X)
    assert np.array_equal(data.y, real.y)


@pytest.mark.parametrize("name", ["thyroid", "covertype"])
def test_files_taken_as_they_are(name, web, monkeypatch, tmp_path):
    need(name)
    file = find(name).file
    web.files[file] = (_cache.data_home() / file).read_bytes()
    stand_in(monkeypatch, name, urls=(web.url + file,))
    data = datasets.load(name, data_home=tmp_path)
    assert data.X.shape == (find(name).n_samples, find(name).n_features)
    assert (tmp_path / file).read_bytes() == web.files[file]


def small_archive(counts, cells, genes):
    """10x's archive: a Matrix Market file of genes x cells, names in two tables."""
    entries = [(g + 1, c + 1, n) for c, row in enumerate(counts) for g, n in enumerate(row) if n]
    head = f"%%MatrixMarket matrix coordinate integer general\n{len(genes)} {len(cells)} {len(entries)}\n"
    files = {
        "matrix.mtx": head + "".join(f"{g} {c} {n}\n" for g, c, n in entries),
        "genes.tsv": "".join(f"ENSG{i}\t{gene}\n" for i, gene in enumerate(genes)),
        "barcodes.tsv": "".join(f"{cell}\n" for cell in cells),
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"filtered_gene_bc_matrices/hg19/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def test_pbmc_from_10x(web, monkeypatch, tmp_path):
    pytest.importorskip("h5py", reason="pbmc3k is read by h5py")
    counts = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 5, 7]], dtype=np.float32)
    cells, genes = ["AAAC-1", "AAAG-1", "AAAT-1"], ["CD8A", "U1", "MS4A1", "U1"]
    web.files["pbmc.tar.gz"] = small_archive(counts.astype(int).tolist(), cells, genes)
    order = (np.float32([2, 1, 3, 5, 7]), np.int32([1, 3, 0, 2, 3]), np.int32([0, 2, 3, 5]))
    expected = hashlib.sha256(b"".join(part.tobytes() for part in order))
    expected.update(b"AAAC-1\nAAAG-1\nAAAT-1" + b"CD8A\nU1\nMS4A1\nU1-1")
    stand_in(monkeypatch, "pbmc3k", n_samples=3, sha256=expected.hexdigest(), urls=(web.url + "pbmc.tar.gz",))
    monkeypatch.setattr("drsne_paper.datasets.pbmc3k._CELLS", 3)
    monkeypatch.setattr("drsne_paper.datasets.pbmc3k._GENES", 4)
    data = datasets.load("pbmc3k", data_home=tmp_path)
    assert np.array_equal(data.X.toarray(), counts)
    assert datasets.states(tmp_path)[datasets.names().index("pbmc3k")].state == "in the data home"
    anndata = pytest.importorskip("anndata", reason="compares with what AnnData reads")
    read = anndata.read_h5ad(tmp_path / "pbmc3k_raw.h5ad")
    assert np.array_equal(read.X.toarray(), counts)
    assert list(read.obs_names) == cells
    assert list(read.var_names) == ["CD8A", "U1", "MS4A1", "U1-1"]
    assert list(read.var["gene_ids"]) == ["ENSG0", "ENSG1", "ENSG2", "ENSG3"]


def test_a_missing_extra_says_so_before_it_downloads(web, monkeypatch, tmp_path):
    for package in ("h5py", "torch", "scanpy", "louvain", "leidenalg"):
        monkeypatch.setitem(sys.modules, package, None)
    stand_in(monkeypatch, "pbmc3k", urls=(web.url + "pbmc.tar.gz",))
    with pytest.raises(ImportError, match=r"needs h5py: pip install '\./paper\[pbmc\]'"):
        datasets.load("pbmc3k", data_home=tmp_path)
    with pytest.raises(ImportError, match=r"torch and torchvision: pip install '\./paper\[cifar10\]'"):
        datasets.load("cifar10_resnet50", data_home=tmp_path)
    with pytest.raises(ImportError, match=r"The PBMC recipe needs scanpy: pip install '\./paper\[pbmc\]'"):
        datasets.recipes.pbmc(data_home=tmp_path)
    with pytest.raises(ImportError, match=r"labels='louvain' needs leidenalg: pip install '\./paper\[pbmc\]'"):
        datasets.recipes.pbmc(labels="louvain", data_home=tmp_path)
    assert web.asked == []
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_source(small_mnist, web, monkeypatch, tmp_path):
    web.close()
    monkeypatch.setattr(web, "close", lambda: None)
    with pytest.raises(datasets.UnreachableError) as caught:
        datasets.load("mnist", data_home=tmp_path)
    message = str(caught.value)
    for part in (web.url + IDX_FILES[0], f"put mnist.npz into the data home {tmp_path}", "DRSNE_DATA_HOME"):
        assert part in message
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_has_moved_or_is_cut_off(small_mnist, web, tmp_path):
    moved = web.files.pop(IDX_FILES[2])
    with pytest.raises(datasets.UnreachableError, match=rf"{IDX_FILES[2]} \(404"):
        datasets.load("mnist", data_home=tmp_path)
    web.files[IDX_FILES[2]], web.extra_length = moved, 10
    with pytest.raises(datasets.UnreachableError, match=r"IncompleteRead"):
        datasets.load("mnist", data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_hangs(small_mnist, monkeypatch, tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(_download, "TIMEOUT", 0.2)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        stand_in(monkeypatch, "mnist", urls=(url,))
        with pytest.raises(datasets.UnreachableError, match="timed out"):
            datasets.load("mnist", data_home=tmp_path)


def test_a_source_that_gives_something_else(small_mnist, web, tmp_path):
    web.files[IDX_FILES[0]] = b"<html>moved</html>"
    with pytest.raises(datasets.CorruptFileError, match=rf"download from .*{IDX_FILES[0]}"):
        datasets.load("mnist", data_home=tmp_path)
    web.files[IDX_FILES[0]] = idx(np.zeros((4, 28, 28), dtype=np.uint8))
    with pytest.raises(datasets.CorruptFileError, match=r"downloaded from http.*checksum"):
        datasets.load("mnist", data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_checksum_is_reported_and_nothing_is_overwritten(small_mnist, web, tmp_path):
    X, y = small_mnist
    X = X.copy()
    X[3, 100] ^= 1
    file = tmp_path / "mnist.npz"
    np.savez(file, X=X, y=y)
    before = file.read_bytes()
    with pytest.raises(datasets.CorruptFileError) as caught:
        datasets.load("mnist", data_home=tmp_path)
    found = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    for part in (str(file), find("mnist").sha256, found, f"Delete {file}"):
        assert part in str(caught.value)
    assert file.read_bytes() == before
    assert web.asked == []
    file.unlink()  # the way out
    assert len(datasets.load("mnist", data_home=tmp_path).X) == 6


def broken(kind, path):
    if kind == "cut short":
        np.savez(path, X=np.zeros((6, 784), np.uint8), y=np.zeros(6, np.uint8))
        path.write_bytes(path.read_bytes()[:3000])
    elif kind == "empty":
        path.touch()
    elif kind == "a page":
        path.write_text("<html>not found</html>")
    elif kind == "another array":
        np.savez(path, images=np.zeros((6, 784), np.uint8))
    elif kind == "pickles":
        np.savez(path, X=np.array([{}], dtype=object), y=np.zeros(6, np.uint8))
    elif kind == "a folder":
        path.mkdir()


@pytest.mark.parametrize("kind", ["cut short", "empty", "a page", "another array", "pickles", "a folder"])
def test_a_broken_file_is_reported(kind, small_mnist, web, tmp_path):
    broken(kind, tmp_path / "mnist.npz")
    with pytest.raises(datasets.CorruptFileError, match=r"mnist\.npz"):
        datasets.load("mnist", data_home=tmp_path)
    assert web.asked == []
    assert (tmp_path / "mnist.npz").exists()
    assert next(s.state for s in datasets.states(tmp_path) if s.name == "mnist") == "corrupt"


def zipped(path, **members):
    """Write an archive with these contents as ``NAME.npy``, compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def npy(header, content=b"", version=(1, 0)):
    """An npy file with any text as its header."""
    text = header.encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + content


def npy_of(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


HEADER = "{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n"
DAMAGES = {
    "more memory than there is": npy(HEADER.format(shape=f"({2**60}, 784)")),
    "a length beyond integers": npy(HEADER.format(shape=f"({10**30}, 784)")),
    "a negative length": npy(HEADER.format(shape="(-6, 784)")),
    "an open bracket": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (6, 784\n"),
    "an open string": npy("{'descr': '''|u1, 'fortran_order': False, 'shape': (6, 784)}\n"),
    "no dictionary": npy("((((((((((((((((((((\n"),
    "another version": npy(HEADER.format(shape="(6, 784)"), version=(2, 0)),
    "no type": npy("{'descr': 5, 'fortran_order': False, 'shape': (6, 784), }\n"),
    "nothing after the header": npy(HEADER.format(shape="(6, 784)")),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_headers_are_reported(kind, small_mnist, tmp_path):
    """A header that states anything gives one kind of error, and does not stop the listing."""
    zipped(tmp_path / "mnist.npz", X=DAMAGES[kind], y=DAMAGES[kind])
    with pytest.raises(datasets.CorruptFileError, match=r"mnist\.npz cannot be read"):
        datasets.load("mnist", data_home=tmp_path)
    state = next(s.state for s in datasets.states(tmp_path) if s.name == "mnist")
    assert state == ("in the data home" if kind == "nothing after the header" else "corrupt")


def test_random_damage_is_reported(small_mnist, tmp_path):
    file = tmp_path / "mnist.npz"
    for seed in range(200):
        rng = np.random.default_rng(seed)
        (np.savez if seed % 2 else np.savez_compressed)(file, X=small_mnist[0], y=small_mnist[1])
        content = bytearray(file.read_bytes())
        for place in rng.integers(0, min(len(content), 200), 1 + seed % 5):
            content[place] = rng.integers(256)
        file.write_bytes(content)
        find("mnist").state(tmp_path)
        try:
            loaded = datasets.load("mnist", data_home=tmp_path)
        except datasets.CorruptFileError:
            continue
        assert np.array_equal(loaded.X, small_mnist[0])  # the damage was outside of the arrays


def test_unknown_and_oversized_members_are_not_decoded(small_mnist, tmp_path):
    """A small file that would expand to hundreds of megabytes takes little memory."""
    X, y = small_mnist
    zeros = npy(HEADER.format(shape=f"({2**28},)"), bytes(2**28))
    file = tmp_path / "mnist.npz"
    for members in ({"X": npy_of(X), "y": npy_of(y), "other": zeros}, {"X": zeros, "y": npy_of(y)}):
        zipped(file, **members)
        assert file.stat().st_size < 2**20
        tracemalloc.start()
        if "other" in members:
            assert np.array_equal(datasets.load("mnist", data_home=tmp_path).X, X)
        else:
            with pytest.raises(datasets.CorruptFileError, match=r"X would need 268,435,456 bytes"):
                datasets.load("mnist", data_home=tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**25


@pytest.mark.parametrize(
    "content", [b"a" * 200_000, b"a,binaryClass\n1,\x00\n", b'a,"\n', b"\xff\xfe", b"", b"1,2\n"], ids=range(6)
)
def test_damaged_tables_are_reported(content, tmp_path):
    file = tmp_path / find("thyroid").file
    file.write_bytes(content)
    with pytest.raises(datasets.CorruptFileError, match=file.name):
        datasets.load("thyroid", data_home=tmp_path)
    assert find("thyroid").state(tmp_path) == ("corrupt", len(content))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", ["mnist", "thyroid", "pbmc3k"])
def test_pipes_and_devices_are_refused_at_once(name, kind, tmp_path):
    file = tmp_path / find(name).file
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    start = time.monotonic()
    with pytest.raises(datasets.CorruptFileError, match=r"must be a regular file.*device"):
        datasets.load(name, data_home=tmp_path)
    assert find(name).state(tmp_path)[0] == "corrupt"
    assert time.monotonic() - start < 5


def test_types_are_part_of_the_checksum(small_mnist, tmp_path):
    X, y = small_mnist
    np.savez(tmp_path / "mnist.npz", X=X.astype(np.int64), y=y)
    with pytest.raises(datasets.CorruptFileError, match=r"X must be of type uint8.*int64"):
        datasets.load("mnist", data_home=tmp_path)


@pytest.mark.parametrize("name", ["thyroid", "pbmc3k"])
def test_truncated_files_are_listed_as_corrupt(name, tmp_path):
    need(name)
    file = find(name).file
    content = (_cache.data_home() / file).read_bytes()
    for cut, state in ((len(content), "in the data home"), (len(content) // 2, "corrupt"), (10, "corrupt")):
        (tmp_path / file).write_bytes(content[:cut])
        assert find(name).state(tmp_path) == (state, cut)


def test_a_full_disk(small_mnist, monkeypatch, tmp_path):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"no space for .*mnist.npz .*DRSNE_DATA_HOME") as caught:
        datasets.load("mnist", data_home=tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_no_permission_to_write(small_mnist, monkeypatch, tmp_path):
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
    else:  # root may write anywhere
        real = Path.open

        def refusing(path, mode="r", *rest, **named):
            if "x" in mode:
                raise PermissionError(errno.EACCES, "Permission denied")
            return real(path, mode, *rest, **named)

        monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(PermissionError, match=r"no permission to write .*mnist.npz.*DRSNE_DATA_HOME"):
        datasets.load("mnist", data_home=tmp_path)
    tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


def test_a_data_home_that_is_a_file(small_mnist, tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(OSError, match=r"mnist.npz could not be written .*data_home"):
        datasets.load("mnist", data_home=tmp_path / "home")


def test_killed_while_writing(small_mnist, tmp_path):
    """Half a file under another name is never taken for a complete one, and is removed once it is old."""
    code = (
        "import os, signal, sys; from pathlib import Path; from drsne_paper.datasets import _cache; "
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL); "
        "_cache.write(Path(sys.argv[1]) / 'mnist.npz', b'half' * 100)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    (part,) = tmp_path.iterdir()
    assert part.name.endswith(".part")
    assert next(s.state for s in datasets.states(tmp_path) if s.name == "mnist") == "to be downloaded"
    old = time.time() - 2 * 86400
    os.utime(part, (old, old))
    (tmp_path / ".mnist.npz.young.part").touch()  # another process may be writing it
    assert np.array_equal(datasets.load("mnist", data_home=tmp_path).X, small_mnist[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mnist.npz.young.part", "mnist.npz"]


def test_where_the_data_home_is(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("DRSNE_DATA_HOME", raising=False)
    assert _cache.data_home() == tmp_path / ".cache" / "drsne"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _cache.data_home() == tmp_path / ".cache" / "drsne"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _cache.data_home() == tmp_path / "xdg" / "drsne"
    monkeypatch.setenv("DRSNE_DATA_HOME", "~/data")
    assert _cache.data_home() == tmp_path / "data"
    assert _cache.data_home(tmp_path / "given") == tmp_path / "given"


def test_features_without_a_public_source(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cifar10_effnet_features.npz .*cifar10_resnet50.*\./paper\[cifar10\]"):
        datasets.load("cifar10", data_home=tmp_path)


class FakeVision:
    """torchvision's CIFAR10 with images that say their own number; ``shift`` puts them in another order."""

    def __init__(self, classes, shift=0):
        made = self
        self.shift = shift

        class CIFAR10:
            def __init__(self, root, *, train, download):
                assert train
                assert download
                number = np.roll(np.arange(50000, dtype="<u4"), made.shift).view(np.uint8).reshape(50000, 4)
                self.data = np.zeros((50000, 2, 2, 3), dtype=np.uint8)
                self.data.reshape(50000, 12)[:, :4] = number
                self.targets = np.roll(classes, made.shift).tolist()

        self.datasets = type("datasets", (), {"CIFAR10": CIFAR10})


def test_resnet_features_are_made_once_of_the_papers_images(monkeypatch, tmp_path):
    """Everything around the network: which images are used, and that the file keeps its own checksum."""
    need("cifar10")
    from drsne_paper.datasets import cifar10_resnet50 as module

    ready = datasets.load("cifar10")
    rows = np.random.RandomState(42).choice(50000, 5000, replace=False)
    classes = np.zeros(50000, dtype=np.uint8)
    classes[rows] = ready.y
    vision, runs = FakeVision(classes, shift=1), []

    def pooled(images, *_):
        runs.append(len(images))
        return np.repeat(images.reshape(5000, 12)[:, :4].copy().view("<u4").astype(np.float32), 2048, axis=1)

    monkeypatch.setattr(module, "_packages", lambda: (None, vision))
    monkeypatch.setattr(module, "_pooled", pooled)
    with pytest.raises(datasets.CorruptFileError, match="original order"):
        datasets.load("cifar10_resnet50", data_home=tmp_path)
    vision.shift = 0
    first, again = (datasets.load("cifar10_resnet50", data_home=tmp_path) for _ in range(2))
    assert runs == [5000]
    assert first.X.shape == (5000, 2048)
    assert np.array_equal(first.X[:, 0], rows)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, ready.y)
    assert "ResNet-50" in first.source
    assert "ResNet-50" not in ready.source
    file = tmp_path / "cifar10_resnet50_features.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays["X"][0, 0] += 1
    np.savez(file, **arrays)
    with pytest.raises(datasets.CorruptFileError, match="checksum"):
        datasets.load("cifar10_resnet50", data_home=tmp_path)
