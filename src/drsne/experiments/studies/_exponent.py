"""An ablation of our own: the exponent of the concentration, and whether its mean is differentiated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from drsne.experiments import tables
from drsne.experiments.dimension import dimension
from drsne.experiments.document import Block, Heading, Table, Text
from drsne.experiments.methods import Method, Ready, Run
from drsne.experiments.rows import Row

EXPONENT = "exponents"  # the name of the method
STRENGTHS = (2.1, 9.0)  # lambda * alpha^2, at which exponents are compared
MAX_ITER, NEIGHBORS = 1000, 30  # the defaults of DRSNE
EXPONENTS = ("alpha = 0.5", "alpha = 1", "alpha = 2", "alpha = 1, mean detached", "alpha by dimension")


def maps(ready: Ready, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """Maps of our DR-SNE by name of the exponents and lambda * alpha^2, alpha that of the map."""
    from drsne import DRSNE, Objective

    graph = tuple(ready.neighbors(90)[0])
    for label, strength in values:
        if label == "alpha by dimension":
            alpha, of_the_data = 2.0, ready.once("dimension", lambda: dimension(ready.neighbors(30)[0].distances))
        else:
            alpha = of_the_data = float(label.split()[2].rstrip(","))
        objective = Objective(
            input_exponent=of_the_data,
            embedding_exponent=alpha,
            normalizer="detached" if "detached" in label else "attached",
            kernel="fixed",
            target_quantile=0.0,
            small_groups=False,
        )
        start = time.perf_counter()
        weight = strength / alpha**2
        model = DRSNE(
            density_weight=weight, objective=objective, neighbors=graph, max_iter=MAX_ITER, density_neighbors=NEIGHBORS,
            random_state=seed, n_jobs=1,
        )  # fmt: skip
        Y = model.fit_transform(ready.X)
        seconds = {"optimization": time.perf_counter() - start}
        yield Run((label, strength), Y, seconds, {"input_exponent": of_the_data})


METHOD = Method(
    title="DR-SNE",
    parameter=("exponents", "strength"),
    grid=tuple((label, strength) for strength in STRENGTHS for label in EXPONENTS),
    maps=maps,
    settings={"max_iter": MAX_ITER, "density_neighbors": NEIGHBORS},
)


def exponent_blocks(rows: Sequence[Row], scores: Sequence[str]) -> list[Block]:
    """A table of the ``scores``, or nothing where there are no rows."""
    found = [row for row in rows if not row["error"]]
    if not found:
        return []
    header = ["lambda alpha^2", "exponent", "alpha of the data", "seeds", *(tables.SHORT[score] for score in scores)]
    header.append("seconds")
    body = []
    for strength in STRENGTHS:
        for label in EXPONENTS:
            some = [row for row in found if tuple(row["value"]) == (label, strength)]
            if some:
                told = [tables.number(*tables.mean(some, score)) for score in scores]
                alpha = some[0]["found"]["input_exponent"]
                line = [f"{strength:g}", label, f"{alpha:.3g}", str(len(some))]
                body.append([*line, *told, f"{tables.fastest(some):.1f}"])
    return [
        Heading("The exponent and the mean"),
        Text(
            "Our own: DR-SNE with its default schedule, k = 30, on 30 components. c = r^-alpha in both spaces, "
            "compared at equal lambda alpha^2 (alpha that of the map), since loss and gradient grow as alpha^2. "
            '"By dimension": alpha is 2 in the map and the local dimension of the data (the estimate of Levina and '
            "Bickel over 30 neighbours) in the data, which makes both profiles estimates of density; the profile that "
            "the map should have is then steeper by alpha of the data over 2. Detached: the gradient does not go "
            "through the mean concentration of the map, as in the authors' code. CC is over 29 neighbours, as in the "
            "tables above."
        ),
        Table(header, body),
    ]
