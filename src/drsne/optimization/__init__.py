"""The optimisation of a map: ``schedule`` defines its phases, ``optimizers`` make steps, and ``loop`` runs them."""
