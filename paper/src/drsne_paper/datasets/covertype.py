"""Forest Covertype as a large task for outlier detection."""

from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import Npz

DATASET = Stored(
    file="cover_adbench.npz",
    format=Npz(),
    n_samples=286048,
    n_features=10,
    description="Ten cartographic variables of forest cells; y is 1 for cottonwood (2747 cells), 0 for lodgepole pine.",
    source="UCI's Covertype (CC BY 4.0), in the version 10_cover of ADBench (Han and others, 2022; BSD 2-Clause).",
    # Checksum of ADBench's file at commit 3dac822.
    sha256="efe66b83fe01359c92e576e08c2ee2e1415163a8c244c837a1045c461cb3de92",
    hashed=(("X", "<i2"), ("y", "<i8")),
    urls=(
        "https://github.com/Minqi824/ADBench/raw/f7fed68dea6901fe9a81ed51b251b1d2456790cd/adbench/datasets/Classical/"
        "10_cover.npz",
    ),
)
