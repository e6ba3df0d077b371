"""Compare the paper preset on Digits with the authors' algorithm in PyTorch, seed by seed.

    python benchmarks/preset.py [--seeds 3] [--loop]     (--loop also runs the PyTorch loop: needs torch)

Standardised Digits, 1000 iterations, k = 29. The preset is compared with: the authors' code, seed 0, on
another machine: trustworthiness .983 / .963 / .900 / .769, concentration correlation .744 / .888 / .979 / .997.
"""

from __future__ import annotations

import argparse

import numpy as np
from data import digits
from report import table, write

from drsne import DRSNE, metrics
from drsne.presets import paper

LAMBDAS = (0.001, 0.005, 0.025, 0.1)
REFERENCE = {0.001: (0.983, 0.744), 0.005: (0.963, 0.888), 0.025: (0.900, 0.979), 0.1: (0.769, 0.997)}
K = 29


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    X = digits()
    methods = {
        "preset": lambda lam, seed: DRSNE(**paper(len(X), lam, K), random_state=seed, n_jobs=-1).fit_transform(X)
    }
    if options.loop:
        from torch_loop import TorchLoop

        loop = TorchLoop(X, K)
        methods["PyTorch loop"] = lambda lam, seed: loop.run(lam, seed, 1000)[0]
    rows = []
    for lam in LAMBDAS:
        for name, method in methods.items():
            maps = [method(lam, seed) for seed in range(options.seeds)]
            trust = [metrics.trustworthiness(X, Y) for Y in maps]
            conc = [metrics.concentration_correlation(X, Y, K) for Y in maps]
            expected = REFERENCE[lam]
            rows.append(
                [
                    f"{lam:g}",
                    name,
                    " ".join(f"{value:.3f}" for value in trust),
                    f"{np.mean(trust):.3f} ({np.mean(trust) - expected[0]:+.3f})",
                    " ".join(f"{value:.3f}" for value in conc),
                    f"{np.mean(conc):.3f} ({np.mean(conc) - expected[1]:+.3f})",
                ]
            )
            print(rows[-1], flush=True)
    header = ["printed lambda", "", "TW by seed", "mean (less reference)", "CC by seed", "mean (less reference)"]
    write(
        "preset",
        "The paper preset",
        f"python benchmarks/preset.py --seeds {options.seeds}" + (" --loop" if options.loop else ""),
        f"Digits, standardised, 1000 iterations, k = {K}, seeds 0 to {options.seeds - 1}. Reference: the authors' "
        "code, seed 0, on another machine: TW .983 / .963 / .900 / .769, CC .744 / .888 / .979 / .997. The preset "
        "computes in double precision; the PyTorch loop is the same algorithm in single precision, as the authors "
        "run it.",
        table(header, rows),
    )


if __name__ == "__main__":
    main()
