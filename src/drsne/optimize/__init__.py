"""The optimisation of a map: ``schedule`` defines phases, ``optimizers`` make steps, and ``loop`` runs the phases."""
