"""CIFAR-10 as in the paper: pooled features from torchvision's ResNet-50, computed once and stored in the data home."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import trange

from drsne_paper.datasets import _cache
from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._download import UnreachableError
from drsne_paper.datasets._formats import Arrays, Npz, npz

_HASHED = (("X", "<f4"), ("y", "|u1"), ("index", "<i4"))
# The sha256 of the classes (uint8) of the 5000 images, in the order of the draw. They are the same as in
# cifar10_effnet_features.npz.
_CLASSES_SHA256 = "9004b14f56c88b27c6286bd69766a45e574891261b543d660bf0504946e5cb9d"
_PIXELS = 224
# means and standard deviations of the colour channels in ImageNet, which these weights expect
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_BATCH = 50


def _packages() -> tuple[Any, Any]:
    try:
        import torch
        import torchvision
    except ImportError as error:
        raise ImportError(
            "Computing the features of cifar10_resnet50 needs torch and torchvision: pip install './paper[cifar10]'. "
            "Or use load('cifar10'), which reads stored features of another network."
        ) from error
    return torch, torchvision


def _training_images(torchvision: Any, home: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return all 50,000 training images (n, 32, 32, 3) and their classes. torchvision stores them in the data home."""
    try:
        images = torchvision.datasets.CIFAR10(str(home / "torchvision"), train=True, download=True)
    except (OSError, RuntimeError) as error:
        raise UnreachableError(
            f"torchvision could not download CIFAR-10 ({error}). Check the network and try again, or put the folder "
            f"cifar-10-batches-py into {home / 'torchvision'} yourself."
        ) from error
    return images.data, np.asarray(images.targets, dtype=np.uint8)


def _pooled(images: NDArray[np.uint8], torch: Any, torchvision: Any) -> NDArray[np.float32]:
    """Return the output (n, 2048) of the global pooling layer of ResNet-50 for images resized to 224 pixels."""
    weights = torchvision.models.ResNet50_Weights.IMAGENET1K_V2
    network = torchvision.models.resnet50(weights=weights)
    network.fc = torch.nn.Identity()
    network.eval()
    transforms = torchvision.transforms
    prepare = transforms.Compose(
        [transforms.ToPILImage(), transforms.Resize(_PIXELS), transforms.ToTensor(), transforms.Normalize(_MEAN, _STD)]
    )
    features = []
    with torch.no_grad():
        for start in trange(0, len(images), _BATCH, desc="ResNet-50"):
            batch = torch.stack([prepare(image) for image in images[start : start + _BATCH]])
            features.append(network(batch).numpy().astype(np.float32))
    return np.vstack(features)


def _make(home: Path) -> bytes:
    torch, torchvision = _packages()
    images, classes = _training_images(torchvision, home)
    index = np.random.RandomState(42).choice(50000, 5000, replace=False).astype(np.int32)
    y = classes[index]
    if hashlib.sha256(y.tobytes()).hexdigest() != _CLASSES_SHA256:
        raise _cache.CorruptFileError(
            f"The CIFAR-10 training images in {home / 'torchvision'} are not the original images, or not in "
            "their original order. Delete this folder and load the data set again."
        )
    arrays: Arrays = {"X": _pooled(images[index], torch, torchvision), "y": y, "index": index}
    own = np.frombuffer(bytes.fromhex(_cache.checksum(arrays, _HASHED)), np.uint8)
    return npz(**arrays, sha256=own)


DATASET = Stored(
    file="cifar10_resnet50_features.npz",
    format=Npz(),
    n_samples=5000,
    n_features=2048,
    description=(
        "2048 pooled features of ResNet-50 (the paper's network) at 224 pixels, neither scaled nor reduced, for 5000 "
        "training images of CIFAR-10, drawn with RandomState(42).choice(50000, 5000, replace=False); y is the class, "
        "0 to 9."
    ),
    source="Krizhevsky's CIFAR-10 (no licence stated); torchvision's ResNet-50 with weights IMAGENET1K_V2.",
    sha256=None,  # the features are computed on the user's computer, so the file contains its own checksum
    hashed=_HASHED,
    make=_make,
)
