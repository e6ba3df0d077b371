"""The choice of a backend and a device by name."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from drsne import checks

NAMES = ("numba", "torch")
_DEVICE = re.compile("cpu(:0)?|cuda(:(0|[1-9][0-9]*))?")  # there is only one CPU
_OLDEST = (2, 9)  # its Triton is the oldest one that compiles our programs
_INSTALL = "Install PyTorch with pip install 'drsne[torch]', or pass backend='numba' and device=None."


def named(backend: str, device: Any) -> tuple[str, str | None]:
    """Return the names of the backend and of its device, which need not be there. A CUDA device implies PyTorch."""
    checks.choice("backend", backend, NAMES)
    if device is not None and not isinstance(device, str):
        device = str(device)  # such as a torch.device
    kind = (device or "").partition(":")[0]
    if device is not None and not _DEVICE.fullmatch(device):
        raise ValueError(
            f"device must be None, 'cpu', 'cuda' or a numbered GPU such as 'cuda:1'; got {device!r}. Pass one of these."
        )
    if backend == "numba" and kind != "cuda":
        return "numba", None
    return "torch", "cpu" if kind == "cpu" else device  # "cpu:0" is the same device


def resolve(backend: str, device: Any) -> tuple[str, str | None]:
    """Return the same names, and raise an error if the backend or the device is not there.

    Without a ``device``, PyTorch uses the first GPU if there is one, else the CPU.
    """
    backend, device = named(backend, device)
    if backend == "numba":
        return backend, device
    kind, _, number = (device or "").partition(":")
    if importlib.util.find_spec("torch") is None:
        raise ImportError(
            f"backend='torch' and CUDA devices need the package torch, which is not installed. {_INSTALL}"
        )
    import torch

    if _too_old(torch):
        raise ImportError(
            f"backend='torch' and CUDA devices need PyTorch {'.'.join(map(str, _OLDEST))} or newer; got "
            f"{torch.__version__}. Update it, or pass backend='numba' and device=None."
        )
    if device is None:
        return "torch", "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(number or 0) >= count:
            found = f"{count} GPU{'s' if count != 1 else ''}"
            raise ValueError(
                f"device={device!r} is not there: PyTorch {torch.__version__} finds {found}. Pass device=None to use "
                "the CPU, or install a build of PyTorch for your GPU."
            )
    return "torch", device


def at_hand(backend: str, device: Any) -> tuple[str, str | None]:
    """Return the same names for new rows of a fitted model, and those of numba if the device is not there.

    Models are used on other machines than that of the fit. PyTorch on the CPU must be asked for by ``device="cpu"``.
    """
    backend, device = named(backend, device)
    if backend == "torch" and importlib.util.find_spec("torch") is not None:
        if device == "cpu":
            return backend, device
        import torch

        if _too_old(torch):
            return "numba", None
        number = int((device or "").partition(":")[2] or 0)
        if torch.cuda.is_available() and number < torch.cuda.device_count():
            return backend, device or "cuda"
    return "numba", None


def _too_old(torch: Any) -> bool:
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) < _OLDEST


@contextmanager
def current(backend: str, device: Any) -> Iterator[None]:
    """Make a GPU the current one during a block, because Triton starts its programs there."""
    name, device = resolve(backend, device)
    if name == "numba" or not str(device).startswith("cuda"):
        yield
        return
    import torch

    with torch.cuda.device(device):
        yield
