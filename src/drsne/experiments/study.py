"""A study is data: which methods, at which values, with which seeds, on which data, by which scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drsne.experiments import methods
from drsne.experiments.methods import Method
from drsne.experiments.rows import key


class Asked(NamedTuple):
    """What a command asks for: some data sets, methods and seeds, or the usual ones; few points, or all."""

    quick: bool = False
    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    @property
    def sample(self) -> str:
        """That of :class:`Study`."""
        return "quick" if self.quick else ""

    def seeds_or(self, usual: Sequence[int], quick: Sequence[int]) -> tuple[int, ...]:
        """Those that were asked for, or else the usual ones, or those of a quick run."""
        return tuple(self.seeds or (quick if self.quick else usual))


USUAL = Asked()


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
    data: Callable[..., Any]  # name -> drsne.datasets.Data as it is fed to methods; a function of a module
    sample: str = ""  # what of the data is taken where it is not all that the study takes, such as "quick"
    against: str = ""  # the data set that maps are scored against, where it is not the one that is embedded
    resampled: bool = False  # whether data are drawn anew for every seed: data is then (name, seed) -> Data
    grids: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # of methods that do not run all of their own
    variants: Mapping[str, Method] = field(default_factory=dict)  # methods of this study alone, or changed for it

    def method(self, name: str) -> Method:
        """What a name stands for here."""
        return self.variants[name] if name in self.variants else methods.find(name)

    def values(self, method: str) -> tuple[Any, ...]:
        """The grid of a method in this study."""
        return self.grids.get(method, self.method(method).grid)

    def load(self, dataset: str, seed: int) -> Any:
        """The data of a run."""
        return self.data(dataset, seed) if self.resampled else self.data(dataset)

    def identity(self, dataset: str, method: str, value: Any, seed: int) -> dict[str, Any]:
        """What a row is a result of."""
        known = self.method(method)
        params = dict(known.settings)
        if isinstance(known.parameter, tuple):
            params |= zip(known.parameter, value, strict=True)
        elif known.parameter is not None:
            params[known.parameter] = value
        if known.together:
            params["path"] = list(self.values(method))
        scores = [[name, k] for name, k in self.scores]
        found = {"dataset": dataset, "method": method, "params": params, "seed": seed, "scores": scores}
        if self.sample:
            found["sample"] = self.sample
        if self.against:
            found["against"] = self.against
        return found | {"resampled": True} if self.resampled else found

    def jobs(self, there: set[str]) -> list[Job]:
        """What is still to be run: what has the same data beside one another, so that it shares."""
        out = []
        for dataset, method, seed in self._groups():
            values = self.values(method)
            missing = tuple(v for v in values if key(self.identity(dataset, method, v, seed)) not in there)
            if missing and self.method(method).together:
                out.append(Job(dataset, method, seed, values))
            else:
                out.extend(Job(dataset, method, seed, (value,)) for value in missing)
        return out

    def all_keys(self) -> set[str]:
        """Of all runs of the study, made or not."""
        return {
            key(self.identity(dataset, method, value, seed))
            for dataset, method, seed in self._groups()
            for value in self.values(method)
        }

    def _groups(self) -> Iterator[tuple[str, str, int]]:
        """Data set, method and seed of every grid."""
        for dataset in self.datasets:
            groups = [
                (dataset, method, seed)
                for method in self.methods
                for seed in (dict.fromkeys(self.seeds) if self.method(method).seeded or self.resampled else (0,))
            ]
            yield from sorted(groups, key=lambda group: group[2]) if self.resampled else groups


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
