"""The estimators ``DRSNE`` and ``DenSNE``: check parameters, prepare the data, optimise, keep the results."""
