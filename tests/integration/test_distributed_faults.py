"""drsne.distributed in a process that is killed, and on a disk that is really full."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow.parquet", reason="reads Parquet files")
from on_partitions import SIZES, contents, fit, write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and limits")]
UNIT = Path(__file__).parents[1] / "unit"

FIT = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from on_partitions import fit
warnings.simplefilter("ignore")
fit(sys.argv[2], sys.argv[3])
"""

# ``grow`` makes room for files of up to a number of bytes, or for that many bytes of files.
FULL = """
import json, os, subprocess, sys, warnings
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from on_partitions import contents, fit, rows
warnings.simplefilter("ignore")
data, folder, kind = Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
if sys.argv[5] == "array":
    import dask.array
    data = dask.array.from_array(rows(1634).astype("float64"), (817, 5))  # files of 32,808 bytes
expected = contents(fit(data, folder / "expected").output)  # also compiles everything
if kind == "limit":
    import resource
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    full, sizes = folder / "full", [1000 * 2**step for step in range(10)]
    grow = lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
else:
    full, sizes = folder / "disk", range(4096, 600_000, 16_384)
    full.mkdir()
    mount = lambda *words: subprocess.run(["mount", *words], stderr=subprocess.DEVNULL).returncode == 0
    if not mount("-t", "tmpfs", "-o", "size=4096", "tmpfs", str(full)):
        print(json.dumps({"mounted": False}))
        sys.exit()
    grow = lambda size: mount("-o", f"remount,size={size}", str(full))
errors, same = [], False
for size in sizes:
    grow(size)
    try:
        found = fit(data, full / "map")
    except Exception as error:
        errors.append((type(error).__name__, str(error)))
    else:
        same = contents(found.output) == expected
        break
print(json.dumps({"mounted": True, "errors": errors, "same": same}))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "data"
    write(folder)
    return folder


STAGES = {
    ("disk", "files"): ("statistics/", "landmarks", "concentration", "map/"),
    ("limit", "array"): ("manifest.json", "input/", "statistics.npz"),
}


@pytest.mark.rotating(3)
@pytest.mark.parametrize(("kind", "source"), STAGES)
def test_a_disk_that_is_full(data, tmp_path, kind, source):
    if source == "array":
        pytest.importorskip("dask.array", reason="reads lazy arrays")
    command = [sys.executable, "-c", FULL, str(UNIT), str(data), str(tmp_path), kind, source]
    if kind == "disk":  # a namespace of its own, in which a small file system can be mounted
        if shutil.which("unshare") is None:
            pytest.skip("needs unshare")
        command = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if kind == "disk" and "unshare" in done.stderr:
        pytest.skip("may not make namespaces")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if not found["mounted"]:
        pytest.skip("may not mount a file system")
    for name, message in found["errors"]:
        assert name == "OSError", message
        assert "Could not write" in message
        assert "call fit again" in message
        assert "The disk is full. Free some space" in message or kind == "limit"
        assert "File too large" in message or kind == "disk"
    for stage in STAGES[kind, source]:
        assert any(stage in message for _, message in found["errors"]), found["errors"]
    assert found["same"]


MOMENTS = ("statistics/000001.npz", "concentration.npz", "../map/part.2.parquet")


@pytest.mark.rotating(3)
def test_a_process_that_is_killed(data, tmp_path):
    expected = fit(data, tmp_path / "expected")
    command = [sys.executable, "-c", FIT, str(UNIT), str(data), str(tmp_path / "map")]
    for moment in MOMENTS:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while not (tmp_path / "map.work" / moment).exists() and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    found = fit(data, tmp_path / "map")
    assert contents(found.output) == contents(expected.output)
    assert len(contents(found.output)) == len(SIZES)
    assert found.scores == expected.scores
    assert not list((tmp_path / "map.work").rglob(".*"))
