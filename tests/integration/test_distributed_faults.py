"""drsne.distributed in a process that is killed, and on a disk that is really full."""

from __future__ import annotations

import json
import os
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

# Larger and larger files can be written, until there is enough room.
FULL = """
import json, resource, sys, warnings
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import dask.array
from on_partitions import contents, fit, rows
warnings.simplefilter("ignore")
folder = Path(sys.argv[2])
data = dask.array.from_array(rows(1634).astype("float64"), (817, 5))  # files of 32,808 bytes
expected = contents(fit(data, folder / "expected").output)  # also compiles everything
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
errors, same = [], False
for step in range(10):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000 * 2**step, hard))
    try:
        found = fit(data, folder / "full")
    except Exception as error:
        errors.append((type(error).__name__, str(error)))
    else:
        same = contents(found.output) == expected
        break
print(json.dumps([errors, same]))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "data"
    write(folder)
    return folder


@pytest.mark.rotating(3)
def test_no_room_for_files(tmp_path):
    pytest.importorskip("dask.array", reason="reads lazy arrays")
    command = [sys.executable, "-c", FULL, str(UNIT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    errors, same = json.loads(done.stdout)
    for name, message in errors:
        assert name == "OSError", message
        assert all(part in message for part in ("Could not write", "File too large", "call fit again")), message
    for stage in ("manifest.json", "input/", "statistics.npz"):
        assert any(stage in message for _, message in errors), errors
    assert same


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
