"""The estimators: ``drsne`` and ``densne`` check parameters, prepare the data, run the optimisation and keep results."""
