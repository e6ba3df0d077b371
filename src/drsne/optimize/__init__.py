"""The optimisation of a map: ``schedule`` has optimisers and phases, and ``loop`` runs the phases."""
