"""DR-SNE for AnnData objects, in the manner of scanpy's tools.

The functions read a representation and, if there is one, a neighbour graph from an AnnData object, and they write their
results into it. They need anndata (``pip install 'drsne[anndata]'``), which is imported when a function is called. They
do not need scanpy.
"""

from drsne.tl.cells import drsne, fit, transform

__all__ = ["drsne", "fit", "transform"]
