"""The choice of a backend and a device: the only place that tells them apart by their names."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from drsne import checks
from drsne.backends.numba import KIND as NUMBA
from drsne.backends.protocol import Backend, DeviceBackend, Kind, Placer
from drsne.backends.torch import KIND as TORCH

if TYPE_CHECKING:
    from drsne.backends.numba.threads import Workers

KINDS = {kind.name: kind for kind in (NUMBA, TORCH)}
PROCESSOR = {"backend": "numba", "device": None}  # the parameters of a model that computes on the processor
_DEVICE = re.compile("cpu(:0)?|cuda(:(0|[1-9][0-9]*))?")  # there is only one CPU
_OLDEST = (2, 9)  # its Triton is the oldest one that compiles our programs
_INSTALL = "Install PyTorch with pip install 'drsne[torch]', or pass backend='numba' and device=None."


def named(backend: str, device: Any) -> tuple[str, str | None]:
    """Return the names of the backend and of its device, which need not be there. A CUDA device implies PyTorch."""
    checks.choice("backend", backend, tuple(KINDS))
    if device is not None and not isinstance(device, str):
        device = str(device)  # such as a torch.device
    if device is not None and not _DEVICE.fullmatch(device):
        raise ValueError(
            f"device must be None, 'cpu', 'cuda' or a numbered GPU such as 'cuda:1'; got {device!r}. Pass one of these."
        )
    kind = (device or "").partition(":")[0]
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

        number = int((device or "").partition(":")[2] or 0)
        if not _too_old(torch) and torch.cuda.is_available() and number < torch.cuda.device_count():
            return backend, device or "cuda"
    return "numba", None


def _too_old(torch: Any) -> bool:
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) < _OLDEST


def kind_of(backend: str, device: Any) -> Kind:
    """Return what the backend of these parameters supports. It need not be there."""
    return KINDS[named(backend, device)[0]]


def fitting(backend: str, device: Any, workers: Workers) -> Backend:
    """Return the backend of a fit; ``workers`` are the threads of the processor."""
    name, device = resolve(backend, device)
    if name == "numba":
        from drsne.backends.numba.backend import NumbaBackend

        return NumbaBackend(workers)
    return _on(device)


@contextmanager
def placing(backend: str, device: Any, workers: Workers) -> Iterator[Placer]:
    """Yield what places new rows: PyTorch on the device, or numba if the device is not there."""
    from drsne.backends.numba.placement import LIMITS, NumbaPlacer

    name, device = at_hand(backend, device)
    if name == "numba":
        yield NumbaPlacer(workers)
        return
    from drsne.backends.torch.placement import TorchPlacer

    message = (
        "The device has too little memory to place rows ({}). Free memory on the device, or call "
        "set_params(backend='numba', device=None) to use the processor."
    )
    with using(name, device, message.format):
        yield TorchPlacer(device, LIMITS, workers)


def holding(values: Any) -> DeviceBackend | None:
    """Return what computes on the device of a tensor, or None for an array or a sparse matrix in NumPy's memory."""
    if not hasattr(values, "new_empty"):  # which every tensor has
        return None
    return _on(values.device)


def comparing(device: Any) -> DeviceBackend | None:
    """Return what computes on the ``device`` of a score, or None for the processor without PyTorch."""
    if device is None:
        return None
    return _on(resolve("torch", device)[1])


def _on(device: Any) -> DeviceBackend:
    from drsne.backends.torch.backend import TorchBackend

    backend: Any = TorchBackend(device)  # the protocol has the types of NumPy
    return backend  # type: ignore[no-any-return]


def gpu(backend: str, device: Any) -> str | None:
    """Return the name of the GPU of a fit, or None. Without a device, PyTorch uses the first GPU if there is one."""
    backend, device = named(backend, device)
    if backend == "torch" and device is None:
        device = at_hand(backend, device)[1]
    return device if device is not None and device.startswith("cuda") else None


def free_memory(device: str) -> int:
    """Return the free memory of a GPU in bytes, with what PyTorch has freed and keeps for later."""
    from torch import cuda

    return int(cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device))


@contextmanager
def using(backend: str, device: Any, message: Callable[[str], str]) -> Iterator[None]:
    """Make a GPU the current one during a block, because Triton starts its programs there.

    If the device has too little memory, a MemoryError with a ``message`` is raised. It is made from PyTorch's reason.
    """
    name, device = resolve(backend, device)
    if name == "numba":
        yield
        return
    import torch

    try:
        with torch.cuda.device(device) if str(device).startswith("cuda") else nullcontext():
            yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(message(str(error).split(". ")[0])) from error
