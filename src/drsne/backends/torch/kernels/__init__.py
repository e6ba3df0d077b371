"""Triton programs for a GPU. Each has a counterpart in plain PyTorch, with which the tests compare it."""
