"""Claims of the main comparison. The constrained choice is compared with the paper's peers on their grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from drsne_paper import methods, published
from drsne_paper.claims import Claim, Verdict, not_run, of_count
from drsne_paper.claims._numbers import listed
from drsne_paper.protocol import Choice, choose
from drsne_paper.rows import Row
from drsne_paper.studies.main import DATASETS

PEERS = ("tsne", "umap", "pacmap", "densmap", "densne")
DENSITY_PEERS = ("densmap", "densne")
TW, CC, RHO = "trustworthiness", "concentration_correlation", "density_rank_correlation"
TRUST = 0.03  # largest distance below the peers' median; the paper's own table satisfies this bound
STEADY = 0.02  # the largest standard deviation over seeds that counts as steady


class Case(NamedTuple):
    """A method and its peers on a data set, without the peers that have no map above the threshold."""

    title: str
    ours: Choice
    peers: dict[str, Choice]

    def best(self, score: str) -> tuple[float, str]:
        """Return the largest mean among the peers, and the title of the peer that has it."""
        return max((choice.mean(score), methods.find(name).title) for name, choice in self.peers.items())


def cases(rows: Sequence[Row], method: str) -> list[Case]:
    """Return the data sets on which ``method`` and a peer were run."""
    out = []
    for dataset, (title, threshold) in DATASETS.items():
        here = [row for row in rows if row["dataset"] == dataset]
        ours = choose([row for row in here if row["method"] == method], threshold)
        every = {name: choose([row for row in here if row["method"] == name], threshold) for name in PEERS}
        peers = {name: choice for name, choice in every.items() if choice.rows}
        if ours.n_seeds and peers:
            out.append(Case(title.short, ours, peers))
    return out


def highest(rows: Sequence[Row], method: str) -> Verdict:
    """Judge whether the concentration correlation is the largest on every data set."""
    found = cases(rows, method)
    leads = {case.title: case.ours.mean(CC) - case.best(CC)[0] for case in found}
    won = {title: lead for title, lead in leads.items() if lead > 0}  # a lead is nan if no map is above the threshold
    lost = [f"{case.title} ({_compared(case, CC)})" for case in found if case.title not in won]
    parts = [f"largest on {len(won)} of {len(found)} data sets"]
    if won:
        least, most = min(won, key=lambda title: won[title]), max(won, key=lambda title: won[title])
        parts.append(f"by {won[least]:.3f} ({least}) to {won[most]:.3f} ({most})")
    if lost:
        parts.append(f"not on {listed(lost)}")
    edges = {name: sum(any(c.peers[name].edges) for c in found if name in c.peers) for name in DENSITY_PEERS}
    parts += [
        f"{methods.find(name).title}'s choice lies at an end of its grid on {count} data sets"
        for name, count in edges.items()
        if count
    ]
    return of_count(len(won), len(found), "; ".join(parts))


def trustworthy(rows: Sequence[Row], method: str) -> Verdict:
    """Judge whether the trustworthiness is near that of the peers."""
    found = cases(rows, method)
    if not found:
        return not_run()
    below = {case.title: median(peer.mean(TW) for peer in case.peers.values()) - case.ours.mean(TW) for case in found}
    met = [title for title, deficit in below.items() if deficit <= TRUST]
    known = [title for title, deficit in below.items() if not math.isnan(deficit)]
    none = [title for title in below if title not in known]
    parts = [f"met on {len(met)} of {len(found)} data sets"]
    if known:
        worst = max(known, key=lambda title: below[title])
        theirs, deficit = _published()
        parts.append(
            f"farthest below on {worst} ({-below[worst]:+.3f}; in the paper's table it is on {theirs}, {-deficit:+.3f})"
        )
    if none:
        parts.append(f"no map is above the threshold on {listed(none)}")
    return of_count(len(met), len(found), "; ".join(parts))


def _published() -> tuple[str, float]:
    """Return the data set that is farthest below the peers' median in the paper's own table, and this distance."""

    def below(dataset: str) -> float:
        peers = [published.main(dataset, name, TW)[0] for name in PEERS]
        return median(peers) - published.main(dataset, "drsne", TW)[0]

    known = [dataset for dataset in DATASETS if not math.isnan(published.main(dataset, "drsne", TW)[0])]
    worst = max(known, key=below)
    return DATASETS[worst][0].short, below(worst)


def less_dense(rows: Sequence[Row], method: str) -> Verdict:
    """Judge whether DensMAP or DenSNE has a larger density rank correlation on most data sets."""
    found = [
        case._replace(peers={name: peer for name, peer in case.peers.items() if name in DENSITY_PEERS})
        for case in cases(rows, method)
    ]
    found = [case for case in found if case.peers and case.ours.rows]
    behind = [case for case in found if case.best(RHO)[0] > case.ours.mean(RHO)]
    ahead = [f"{case.title} ({_compared(case, RHO)})" for case in found if case not in behind]
    parts = [f"they are larger on {len(behind)} of {len(found)} data sets"]
    if behind:
        most = max(behind, key=lambda case: case.best(RHO)[0] - case.ours.mean(RHO))
        parts.append(f"by most on {most.title} ({_compared(most, RHO)})")
    if ahead:
        parts.append(f"not on {listed(ahead)}")
    return of_count(len(behind), len(found), "; ".join(parts), enough=0.5)


def steady(rows: Sequence[Row], method: str) -> Verdict:
    """Judge whether scores vary little over seeds."""
    spread = {}
    for dataset, (title, threshold) in DATASETS.items():
        ours = choose([row for row in rows if (row["dataset"], row["method"]) == (dataset, method)], threshold)
        if len(ours.rows) > 1:
            spread[title.short] = {"TW": ours.std(TW), "CC": ours.std(CC)}
    wide = [
        f"{title} ({name} ± {std:.3f})" for title, stds in spread.items() for name, std in stds.items() if std > STEADY
    ]
    met = sum(max(stds.values()) <= STEADY for stds in spread.values())
    numbers = f"met on {met} of {len(spread)} data sets" + (f"; not on {listed(wide)}" if wide else "")
    return of_count(met, len(spread), numbers)


def _compared(case: Case, score: str) -> str:
    best, whose = case.best(score)
    return f"{case.ours.mean(score):.3f}, {whose} {best:.3f}" if case.ours.rows else "no map is above the threshold"


_OTHERS = {
    "drsne_adaptive": "`drsne_adaptive`, our default",
    "drsne": "`drsne`, ours with the fixed kernel",
    "drsne_both": "`drsne_both`, ours with the fixed kernel and both neighbourhoods",
}


def _claim(judge: Callable[..., Verdict], text: str, where: str, criterion: str) -> Claim:
    """Return a claim about the paper's method, as implemented in its code. The claim is also tested for our method."""
    return Claim(
        text=text,
        where=where,
        criterion=criterion,
        judge=partial(judge, method="drsne_code"),
        also={label: partial(judge, method=name) for name, label in _OTHERS.items()},
    )


CLAIMS = (
    _claim(
        highest,
        "Among maps above the trustworthiness threshold, those of DR-SNE have the highest concentration correlation on "
        "every data set.",
        "Section 4.1, Table 1",
        "its mean is above that of every peer, each with the best of the values that were run",
    ),
    _claim(
        trustworthy,
        "DR-SNE keeps a competitive trustworthiness on all data sets.",
        "Section 4.1, Table 1",
        f"its mean is at most {TRUST:g} below the median of the peers' means",
    ),
    _claim(
        less_dense,
        "The density rank correlation of DR-SNE is mixed: DensMAP and DenSNE are often better.",
        "Section 4.1, Table 1",
        "the mean of DensMAP or DenSNE is larger on at least half of the data sets",
    ),
    _claim(
        steady,
        "Results vary little from run to run.",
        "Section 4.2, about the ablations; tested here for Table 1",
        f"the standard deviations of TW and CC over seeds are at most {STEADY:g} on every data set",
    ),
)
