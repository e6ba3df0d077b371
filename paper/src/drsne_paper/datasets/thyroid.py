"""Thyroid: the cleaned table of hypothyroid patients in the paper's anomaly study."""

from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import Csv

DATASET = Stored(
    file="cleaned_dataset_Thyroid1.csv",
    format=Csv("binaryClass"),
    n_samples=3771,
    n_features=25,
    description="Age, sex, medical history and blood values of 3771 patients; y is 1 for the 291 with hypothyroidism.",
    source="UCI's Thyroid Disease (CC BY 4.0), cleaned by udhavkharel/HealthStatus (no licence stated).",
    # Checksum of the file at the commit in the URL below.
    sha256="a8d219f62eeae1fd1440348395b08c2a0a2fa6b37f8c720cf80f682faf0515bb",
    hashed=(("X", "<f8"), ("y", "<i8")),
    urls=(
        "https://github.com/udhavkharel/HealthStatus/raw/30155ed497463de90f1bdbf5fa22359a1babfbce/data/"
        "cleaned_dataset_Thyroid1.csv",
    ),
)
