"""The estimators ``DRSNE`` and ``DenSNE``. They check parameters, prepare the data, optimise and keep the results."""
