"""The loss of a map, a sum of terms: the equations of docs/theory.md on arrays.

Loops over pairs and points are left to a backend. ``term`` says what a term is, ``kl`` has the KL divergence of t-SNE,
``concentration`` the density term of DR-SNE, ``log_radii`` that of den-SNE, and ``pull`` the term of updates.
``problem`` adds the terms up. ``profile`` and ``contrast`` have the quantities that terms compare.
"""
