"""The objectives that are minimised: the equations of docs/theory.md on arrays.

Loops over pairs and points are left to a backend. ``kl`` has the KL divergence of t-SNE, ``concentration`` the profiles
and their loss, ``kernel`` the scales of the adaptive kernel, ``neighborhoods`` the radii of a map, ``problem`` the
parts that both objectives share, and ``drsne`` and ``densne`` the two objectives.
"""
