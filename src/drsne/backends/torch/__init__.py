"""The backend of PyTorch, on a GPU or a CPU. Only fits with ``backend="torch"`` import it."""
