"""Plain PyTorch O(n^2) autograd loops: of the paper's code, written from its description, and of our objective.

All pairs by torch.cdist, losses by tensor operations, gradients by autograd, Adam at a constant rate. Constants as in
docs/theory.md, section 6, third column.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from drsne import Schedule
from drsne.backends.numpy import NumpyBackend
from drsne.optimize.loop import minimize
from drsne.terms.problem import Evaluation

EPS = 1e-8


class TorchLoop:
    """Affinities, neighbours and target of the data, made once."""

    def __init__(self, X: np.ndarray, k: int = 29, perplexity: float = 30.0) -> None:
        self.n = len(X)
        distances, indices = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X).kneighbors(X)
        c = k / (distances[:, 1:].sum(axis=1) + EPS)
        self.target = torch.log(torch.tensor(c / (c.mean() + EPS), dtype=torch.float32) + EPS)
        self.near = torch.tensor(indices[:, 1:])
        self.P = torch.tensor(affinities(X, perplexity), dtype=torch.float32)
        self.stored = self.P.gather(1, self.near)
        self.warm = self.P / self.P.sum()

    def run(self, lam: float, seed: int, max_iter: int, warmup: int = 50) -> tuple[np.ndarray, float]:
        """Return the map and the seconds of its iterations."""
        start = np.random.RandomState(seed).normal(0, 1e-4, size=(self.n, 2))
        Y = torch.tensor(start, dtype=torch.float32, requires_grad=True)
        adam = torch.optim.Adam([Y], lr=2.0)
        began = time.perf_counter()
        for iteration in range(max_iter):
            adam.zero_grad()
            loss = self.loss(Y, lam, iteration < warmup)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([Y], 1.0)
            adam.step()
        return Y.detach().numpy().astype(np.float64), time.perf_counter() - began

    def loss(self, Y: torch.Tensor, lam: float, warm: bool) -> torch.Tensor:
        w = 1.0 / (1.0 + torch.cdist(Y, Y) ** 2 + EPS)
        w = w * (1.0 - torch.eye(self.n))
        Q = w / w.sum()
        if warm:
            return (self.warm * (torch.log(self.warm + EPS) - torch.log(Q + EPS))).sum() / self.n
        q = Q.gather(1, self.near)
        kl = (self.stored * (torch.log(self.stored + EPS) - torch.log(q + EPS))).sum() / self.n
        lengths = torch.sqrt(((Y[:, None] - Y[self.near]) ** 2).sum(dim=2) + EPS)
        c = self.near.shape[1] / lengths.sum(dim=1)
        relative = c / (c.detach().mean() + EPS)
        return kl + lam * ((self.target - torch.log(relative + EPS)) ** 2).mean()


class DenseLoop:
    """The same for our default objective: KL over all pairs of a dense symmetric P, and the density term, attached."""

    def __init__(self, P: np.ndarray, near: np.ndarray, target: np.ndarray) -> None:
        self.P = torch.tensor(P, dtype=torch.float32)
        self.log_P = torch.log(torch.clamp(self.P, min=1e-30))
        self.near, self.target = torch.tensor(near, dtype=torch.int64), torch.tensor(target, dtype=torch.float32)
        self.off = 1.0 - torch.eye(len(P))
        self.backend, self.reordered_every = NumpyBackend(), None

    def start(self) -> None:
        """Return no state."""

    def seconds(self, Y: np.ndarray, weight: float, n_iter: int) -> float:
        """Return the seconds per iteration of Adam from ``Y`` on."""
        Z = torch.tensor(Y, dtype=torch.float32, requires_grad=True)
        adam = torch.optim.Adam([Z], lr=0.1)
        began = time.perf_counter()
        for _ in range(n_iter):
            adam.zero_grad()
            self.loss(Z, weight).backward()
            adam.step()
        return (time.perf_counter() - began) / n_iter

    def run(self, Y: np.ndarray, schedule: Schedule, weight: float) -> np.ndarray:
        """Return the map at the end of ``schedule``, with every gradient from autograd."""
        self.weight = weight
        return minimize(self, Y, replace(schedule, record_every=10**9)).embedding

    def evaluate(self, Y: np.ndarray, *, exaggeration: float, density: float, **options: object) -> Evaluation:
        Z = torch.tensor(Y, dtype=torch.float32, requires_grad=True)
        loss = self.loss(Z, self.weight * density)
        if exaggeration != 1.0:
            loss = loss + (exaggeration - 1.0) * (self.P * torch.log1p(torch.cdist(Z, Z) ** 2)).sum()
        loss.backward()
        return Evaluation(len(Y) * Z.grad.numpy().astype(np.float64), float("nan"), float("nan"))

    def loss(self, Y: torch.Tensor, weight: float) -> torch.Tensor:
        w = self.off / (1.0 + torch.cdist(Y, Y) ** 2)
        Q = torch.clamp(w / w.sum(), min=1e-30)
        kl = (self.P * (self.log_P - torch.log(Q))).sum()
        c = 1.0 / ((Y[:, None] - Y[self.near]).norm(dim=2).mean(dim=1) + 1e-8)
        return kl + weight * ((self.target - torch.log(c / c.mean())) ** 2).mean()


def affinities(X: np.ndarray, perplexity: float) -> np.ndarray:
    """Return affinities by bisection over all pairs: at most 50 steps, no shift, EPS in the row sum and the log."""
    n = len(X)
    D = pairwise_distances(X, squared=True)
    P = np.zeros((n, n))
    for i in range(n):
        others = np.arange(n) != i
        beta, low, high = 1.0, 0.0, np.inf
        for _ in range(50):
            p = np.exp(-beta * D[i, others])
            p /= p.sum() + EPS
            gap = -(p * np.log(p + EPS)).sum() - np.log(perplexity)
            if abs(gap) < 1e-5:
                break
            low, high = (beta, high) if gap > 0 else (low, beta)
            beta = 2.0 * beta if high == np.inf else 0.5 * (low + high)
        P[i, others] = p
    return (P + P.T) / (2 * n)
