"""CIFAR-10: features from a pretrained EfficientNet-Lite0. The paper's features are in ``cifar10_resnet50``."""

from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import Npz

DATASET = Stored(
    file="cifar10_effnet_features.npz",
    format=Npz(),
    n_samples=5000,
    n_features=50,
    description=(
        "50 principal components of the standardised pooled features of EfficientNet-Lite0 (not the paper's ResNet-50) "
        "for 5000 training images of CIFAR-10, drawn with RandomState(42).choice(50000, 5000, replace=False); "
        "y is the class, 0 to 9."
    ),
    source=(
        "Krizhevsky's CIFAR-10 (no licence stated); features computed at 224 pixels with the ImageNet weights "
        "efficientnet-lite0-57934424 (Apache 2.0)."
    ),
    sha256="994520aa13bcfc5621a5d6a5396a15e283962ae83a280153e863377e14ad6a25",
    hashed=(("X", "<f4"), ("y", "|u1"), ("index", "<i4")),
    alternative="To compute the features of the paper, call load('cifar10_resnet50'): pip install './paper[cifar10]'.",
)
