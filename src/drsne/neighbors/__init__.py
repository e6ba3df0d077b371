"""Nearest neighbours of the data: ``search`` chooses how they are found, and the other modules find them."""
