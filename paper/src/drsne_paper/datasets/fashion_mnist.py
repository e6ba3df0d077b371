"""Fashion-MNIST: 28 x 28 images of clothes."""

from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import IDX_FILES, Npz, images

_UPSTREAM = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"

DATASET = Stored(
    file="fashion_mnist.npz",
    format=Npz(),
    n_samples=70000,
    n_features=784,
    description=(
        "60,000 training images and then 10,000 test images of clothes, 28 x 28 pixels with values from 0 to 255; y is "
        "the class, 0 to 9. Each class has 7000 images."
    ),
    source="zalandoresearch/fashion-mnist (Xiao, Rasul and Vollgraf, 2017), MIT licence.",
    # Checksum of the four idx files in Debian's package dataset-fashion-mnist 0.0~git20200523.55506a9-1.
    sha256="2cbc59191665e1ba3f2494648f17edac5974f748ab89fb2ae05597d658161f54",
    hashed=(("X", "|u1"), ("y", "|u1")),
    urls=tuple(_UPSTREAM + name for name in IDX_FILES),
    convert=images,
)
