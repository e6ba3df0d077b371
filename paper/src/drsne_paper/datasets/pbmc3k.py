"""PBMC3k: sparse gene counts of 2700 blood cells (10x Genomics)."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drsne_paper.datasets import _cache
from drsne_paper.datasets._data import Stored
from drsne_paper.datasets._formats import Arrays, H5ad, tenx

_CELLS, _GENES = 2700, 32738
ANNOTATIONS = "pbmc3k_annotations.csv"
UNANNOTATED = "not annotated"
# The sha256 of the lines "barcode TAB seurat_annotations NEWLINE" in the order of the table. The table is the final
# annotation of Seurat's pbmc3k in single-cell-data/TileDB-SOMA at beb72a2 (soma-dataframe-pbmc3k-processed-obs).
_ANNOTATIONS_SHA256 = "ba7f6a5b0d96b925aacacee468e7093455a929ff850e3a85a88b89566a021978"


def _convert(parts: Sequence[bytes]) -> bytes:
    return tenx(parts[0])


def _assemble(arrays: Arrays, home: Path) -> tuple[Any, Any, str]:
    from scipy.sparse import csr_matrix

    X = csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(_CELLS, _GENES))
    path = home / ANNOTATIONS
    if not path.exists():
        return X, None, f"y is None, because {ANNOTATIONS} is not in the data home."
    y = _labels(path, arrays["cells"].tobytes().decode().split("\n"))
    return X, y, f"y is the cell type from Seurat, or {UNANNOTATED!r} for 62 cells that failed its quality control."


def _labels(path: Path, cells: Sequence[str]) -> NDArray[Any]:
    way_out = f"Delete {path} to load the data without labels, or replace it with the correct file."
    _cache.check_regular(path)
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            pairs = [(row["barcode"], row["seurat_annotations"]) for row in csv.DictReader(stream)]
    except _cache.DECODING_ERRORS as error:
        raise _cache.CorruptFileError(
            f"{path} cannot be read as a table of annotations ({error!r}). {way_out}"
        ) from error
    found = hashlib.sha256("".join(f"{cell}\t{label}\n" for cell, label in pairs).encode()).hexdigest()
    if found != _ANNOTATIONS_SHA256:
        raise _cache.CorruptFileError(
            f"{path} has the wrong checksum: expected sha256 {_ANNOTATIONS_SHA256}, found {found}. The file is "
            f"not used. {way_out}"
        )
    known = dict(pairs)
    return np.array([known.get(cell, UNANNOTATED) for cell in cells])


DATASET = Stored(
    file="pbmc3k_raw.h5ad",
    format=H5ad(),
    n_samples=_CELLS,
    n_features=_GENES,
    description="Counts of 32,738 genes (hg19) in 2700 blood cells of a healthy donor, not filtered, as float32 CSR.",
    source="10x Genomics, 3k PBMCs from a Healthy Donor (CC BY 4.0).",
    # Checksum of the counts (CSR, sorted), followed by the barcodes and the unique gene symbols (joined by newlines),
    # in hmumme/scToolbox at ae12ae7. Fred-Hutch-Innovation-Lab/FHIL.SC.utils at 48f278d has the same counts.
    sha256="2fdea116d62bf52bcd58b68c01125f68ae0bae096cadc1f977142927dcf830cd",
    hashed=(("data", "<f4"), ("indices", "<i4"), ("indptr", "<i4"), ("cells", "|u1"), ("genes", "|u1")),
    urls=("https://cf.10xgenomics.com/samples/cell/pbmc3k/pbmc3k_filtered_gene_bc_matrices.tar.gz",),
    convert=_convert,
    assemble=_assemble,
)
