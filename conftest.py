"""Files that pytest leaves out because they import packages that are not installed."""

from importlib.util import find_spec

collect_ignore_glob: list[str] = []
if find_spec("torch") is None:
    collect_ignore_glob += ["src/drsne/backends/torch/*"]
elif find_spec("triton") is None:
    collect_ignore_glob += ["src/drsne/backends/torch/kernels/*"]
