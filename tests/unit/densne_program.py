"""The iteration of den-SNE's program in plain numpy, double precision, dense, written from its description.

Source of the description: github hhcho/densvis at d65bb31, folder densne (docs/theory.md, section 10). Its slip with
the distances of the transposed pairs is not repeated. Nothing here is shared with the package.
"""

from __future__ import annotations

import numpy as np


def squared(A):
    return ((A[:, None] - A[None]) ** 2).sum(axis=2)


def conditional(D, perplexity):
    """Rows over the 3 x perplexity nearest, by bisection of the precision."""
    n = len(D)
    C = np.zeros((n, n))
    for i in range(n):
        near = np.argsort(np.where(np.arange(n) == i, np.inf, D[i]), kind="stable")[: int(3 * perplexity)]
        low, high = -60.0, 60.0  # log beta
        for _ in range(200):
            middle = (low + high) / 2
            p = np.exp(-np.exp(middle) * (D[i, near] - D[i, near].min()))
            p /= p.sum()
            entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
            low, high = (middle, high) if entropy > np.log(perplexity) else (low, middle)
        C[i, near] = p
    return C


class Program:
    def __init__(self, X, lam, perplexity, shift=0.1):
        self.n, self.lam, self.shift = len(X), lam, shift
        D = squared(X)
        C = conditional(D, perplexity)
        self.stored = (C > 0) | (C.T > 0)
        self.P = (C + C.T) / (C + C.T).sum()
        self.log_radii = np.log((self.P * D).sum(axis=1) / self.P.sum(axis=1))
        self.R = (self.log_radii - self.log_radii.mean()) / self.log_radii.std(ddof=1)

    def parts(self, Y):
        delta = Y[:, None] - Y[None]
        phi = 1 / (1 + (delta**2).sum(axis=2))
        np.fill_diagonal(phi, 0.0)
        return delta, phi

    def radii(self, phi):
        S = (self.stored * phi).sum(axis=1)
        r = np.log(self.stored.sum(axis=1) / S - 1)
        away = r - r.mean()
        s = np.sqrt((away**2).sum() / (self.n - 1) + self.shift)
        return S, r, away, s, (away * self.R).sum() / (self.n - 1)

    def rho(self, Y):
        *_, s, c = self.radii(self.parts(Y)[1])
        return c / s

    def step_direction(self, Y, dense):
        delta, phi = self.parts(Y)
        M = self.P * phi - phi**2 / phi.sum()
        if dense:
            S, r, away, s, c = self.radii(phi)
            g = (self.R / s - c * away / s**3) * (1 + np.exp(-r)) / S
            M = M - self.lam / (self.n - 1) * self.stored * phi**2 * (g[:, None] + g[None])
        return (M[..., None] * delta).sum(axis=1)

    def run(self, Y, max_iter, fraction, switch=250):
        step, gain = np.zeros_like(Y), np.ones_like(Y)
        for it in range(1, max_iter + 1):
            G = self.step_direction(Y, it >= (1 - fraction) * max_iter)
            gain = np.maximum(np.where(np.sign(G) != np.sign(step), gain + 0.2, gain * 0.8), 0.01)
            step = (0.5 if it <= switch else 0.8) * step - 200 * gain * G
            Y = Y + step
            Y = Y - Y.mean(axis=0)
        return Y
