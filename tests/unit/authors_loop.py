"""The authors' algorithm in plain numpy, double precision, written from its description (docs/theory.md).

Gradients are written out by the chain rule on dense matrices: nothing here is shared with the package.
"""

from __future__ import annotations

import numpy as np

EPS = 1e-8


def pairwise(A):
    return np.sqrt(((A[:, None] - A[None]) ** 2).sum(axis=2))


def affinities(X, perplexity=30.0, doubling=False):
    D2 = pairwise(X) ** 2
    n = len(X)
    P = np.zeros((n, n))
    for i in range(n):
        d = np.delete(D2[i], i)
        beta, low, high = 1.0, None, None
        for _ in range(50):
            p = np.exp(-beta * d)
            p = p / (p.sum() + EPS)
            gap = -(p * np.log(p + EPS)).sum() - np.log(perplexity)
            if abs(gap) < 1e-5:
                break
            if gap > 0:
                low = beta
                beta = 2 * beta if high is None or doubling else (beta + high) / 2
            else:
                high = beta
                beta = beta / 2 if low is None or doubling else (beta + low) / 2
        P[i, np.arange(n) != i] = p
    return (P + P.T) / (2 * n)


class AuthorsLoop:
    def __init__(self, X, lam, k, warmup, doubling=False):
        self.n, self.lam, self.warmup = len(X), lam, warmup
        D = pairwise(X)
        np.fill_diagonal(D, np.inf)
        self.near = np.argsort(D, axis=1, kind="stable")[:, :k]
        c = k / (np.take_along_axis(D, self.near, axis=1).sum(axis=1) + EPS)
        self.target = np.log(c / (c.mean() + EPS) + EPS)
        self.P = affinities(X, doubling=doubling)
        self.warm = 4.0 * self.P / (4.0 * self.P).sum()
        listed = np.zeros((self.n, self.n), dtype=bool)
        np.put_along_axis(listed, self.near, True, axis=1)
        self.stored = np.where(listed, self.P, 0.0)

    def kl_gradient(self, Y, P):
        """(1/n) sum P log(P / (Q + eps)), differentiated through Q = w / sum(w)."""
        delta = Y[:, None] - Y[None]
        w = 1.0 / (1.0 + (delta**2).sum(axis=2) + EPS)
        np.fill_diagonal(w, 0.0)
        Z = w.sum()
        Q = w / Z
        dQ = -P / (Q + EPS) / self.n
        dw = (dQ - (dQ * Q).sum()) / Z
        np.fill_diagonal(dw, 0.0)
        M = dw * -(w**2)
        M = M + M.T
        return 2.0 * (M[..., None] * delta).sum(axis=1)

    def density_gradient(self, Y):
        k = self.near.shape[1]
        delta = Y[:, None] - Y[self.near]
        length = np.sqrt((delta**2).sum(axis=2) + EPS)
        c = k / length.sum(axis=1)
        mean = c.mean() + EPS  # detached
        relative = c / mean
        dc = -2.0 / self.n * (self.target - np.log(relative + EPS)) / (relative + EPS) / mean
        pull = (-dc * c**2 / k)[:, None, None] * delta / length[..., None]
        G = pull.sum(axis=1)
        np.subtract.at(G, self.near.ravel(), pull.reshape(-1, Y.shape[1]))
        return G

    def gradient(self, Y, iteration):
        if iteration < self.warmup:
            return self.kl_gradient(Y, self.warm)
        return self.kl_gradient(Y, self.stored) + self.lam * self.density_gradient(Y)

    def run(self, steps, seed):
        Y = np.random.RandomState(seed).normal(0, 1e-4, size=(self.n, 2))
        m, v = np.zeros_like(Y), np.zeros_like(Y)
        for t in range(steps):
            G = self.gradient(Y, t)
            G = G * min(1.0, 1.0 / (np.linalg.norm(G) + 1e-6))
            m, v = 0.9 * m + 0.1 * G, 0.999 * v + 0.001 * G**2
            Y = Y - 2.0 * (m / (1 - 0.9 ** (t + 1))) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
        return Y
