"""How a map is optimised: ``schedule`` says what happens when, ``optimizers`` make steps, and ``loop`` runs them."""
