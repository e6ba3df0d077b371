"""A study is data: which methods, at which values, with which seeds, on which data, by which scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drsne.experiments import methods
from drsne.experiments.rows import key


class Job(NamedTuple):
    """Runs that are made together: one value of a grid, or all values of a path."""

    dataset: str
    method: str
    seed: int
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is run, by names; nothing is loaded before it is needed."""

    name: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    scores: tuple[tuple[str, int | None], ...]
    data: Callable[[str], Any]  # name -> drsne.datasets.Data as it is fed to methods
    grids: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # of methods that do not run all of their own

    def values(self, method: str) -> tuple[Any, ...]:
        """The grid of a method in this study."""
        return self.grids.get(method, methods.load(method).grid)

    def identity(self, dataset: str, method: str, value: Any, seed: int) -> dict[str, Any]:
        """What a row is a result of."""
        known = methods.load(method)
        params = dict(known.settings)
        if known.parameter is not None:
            params[known.parameter] = value
        if known.together:
            params["path"] = list(self.values(method))
        scores = [[name, k] for name, k in self.scores]
        return {"dataset": dataset, "method": method, "params": params, "seed": seed, "scores": scores}

    def jobs(self, there: set[str]) -> list[Job]:
        """What is still to be run: the quick methods of a data set beside one another, so that they share."""
        out = []
        for dataset in self.datasets:
            for method in self.methods:
                known = methods.load(method)
                for seed in self.seeds if known.seeded else self.seeds[:1]:
                    missing = tuple(
                        value
                        for value in self.values(method)
                        if key(self.identity(dataset, method, value, seed)) not in there
                    )
                    if missing and known.together:
                        out.append(Job(dataset, method, seed, self.values(method)))
                    else:
                        out.extend(Job(dataset, method, seed, (value,)) for value in missing)
        return out


def check_names(
    what: str, given: Sequence[str] | None, usual: Sequence[str], known: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Names that were asked for, in the order of those that are known (``usual`` and more); ``usual`` for None."""
    from difflib import get_close_matches

    if given is None:
        return tuple(usual)
    known = usual if known is None else known
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{what} must be among {', '.join(known)}; got {name!r}.{hint}")
    return tuple(name for name in known if name in given)
