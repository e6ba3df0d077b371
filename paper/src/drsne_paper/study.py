"""A study as data: its methods, the values of their grids, the seeds, the data sets and the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drsne_paper import checks, methods
from drsne_paper.methods import Method
from drsne_paper.rows import key


class Selection(NamedTuple):
    """The part of a study that a command selects; None selects all data sets, methods or seeds of the study."""

    quick: bool = False  # whether to use few points and few values
    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    @property
    def sample(self) -> str:
        """Return the ``sample`` of the selected :class:`Study`."""
        return "quick" if self.quick else ""

    def seeds_or(self, default: Sequence[int], quick: Sequence[int]) -> tuple[int, ...]:
        """Return the selected seeds, or the default seeds if none are selected; a quick run has other default seeds."""
        return tuple(self.seeds or (quick if self.quick else default))


EVERYTHING = Selection()


class Job(NamedTuple):
    """Runs that are made together: one value of a grid, or all values of a path."""

    dataset: str
    method: str
    seed: int
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """The runs of a study. Data and methods are given by name, and nothing is loaded before it is needed."""

    name: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    scores: tuple[tuple[str, int | None], ...]
    data: Callable[..., Any]  # (name, **data_params) -> drsne_paper.datasets.Data, as methods receive it
    data_params: Mapping[str, Any] = field(default_factory=dict)  # what identifies the data besides their name
    against: Mapping[str, Any] | None = None  # data_params of the data that maps are scored against, if different
    sample: str = ""  # "quick" for a small part of the data
    resampled: bool = False  # whether every seed has its own data: data is then (name, seed, **data_params) -> Data
    grids: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # the grids of methods that run only a part
    variants: Mapping[str, Method] = field(default_factory=dict)  # methods that only this study has, or that it changes
    extra: Callable[[str, Any, Any, Any], Mapping[str, Any]] | None = None  # (dataset, X, map, labels) -> more details

    def method(self, name: str) -> Method:
        """Return the method with the given name in this study."""
        return self.variants[name] if name in self.variants else methods.find(name)

    def values(self, method: str) -> tuple[Any, ...]:
        """Return the grid of a method in this study."""
        return self.grids.get(method, self.method(method).grid)

    def load(self, dataset: str, seed: int | None = None) -> Any:
        """Return the data of a run."""
        arguments = (dataset, seed) if self.resampled else (dataset,)
        return self.data(*arguments, **self.data_params)

    def load_reference(self, dataset: str) -> Any:
        """Return the data that maps are scored against, for a study in which they differ from the embedded data."""
        return self.data(dataset, **(self.against or {}))

    def identity(self, dataset: str, method: str, value: Any, seed: int) -> dict[str, Any]:
        """Return what identifies a row: everything that its result depends on."""
        known = self.method(method)
        params = dict(known.settings)
        if isinstance(known.parameter, tuple):
            params |= zip(known.parameter, value, strict=True)
        elif known.parameter is not None:
            params[known.parameter] = value
        if known.together:
            params["path"] = list(self.values(method))
        scores = [[name, k] for name, k in self.scores]
        out = {"dataset": dataset, "method": method, "params": params, "seed": seed, "scores": scores}
        if self.data_params:
            out["data"] = dict(self.data_params)
        if self.against is not None:
            out["against"] = dict(self.against)
        if self.sample:
            out["sample"] = self.sample
        return out | {"resampled": True} if self.resampled else out

    def jobs(self, done: set[str]) -> list[Job]:
        """Return the jobs whose keys are not ``done``. Jobs on the same data are adjacent, so that they share work."""
        out = []
        for dataset, method, seed in self.groups():
            values = self.values(method)
            missing = tuple(v for v in values if key(self.identity(dataset, method, v, seed)) not in done)
            if missing and self.method(method).together:
                out.append(Job(dataset, method, seed, values))
            else:
                out.extend(Job(dataset, method, seed, (value,)) for value in missing)
        return out

    def all_keys(self) -> set[str]:
        """Return the keys of all runs of the study, whether they have rows or not."""
        return {
            key(self.identity(dataset, method, value, seed))
            for dataset, method, seed in self.groups()
            for value in self.values(method)
        }

    def groups(self) -> Iterator[tuple[str, str, int]]:
        """Yield the data set, the method and the seed of every grid."""
        for dataset in self.datasets:
            groups = [
                (dataset, method, seed)
                for method in self.methods
                for seed in (dict.fromkeys(self.seeds) if self.method(method).seeded or self.resampled else (0,))
            ]
            yield from sorted(groups, key=lambda group: group[2]) if self.resampled else groups


def check_names(
    parameter: str, given: Sequence[str] | None, default: Sequence[str], known: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the given names in the order of the known names; None stands for all names in ``default``."""
    if given is None:
        return tuple(default)
    known = default if known is None else known
    for name in given:
        checks.choice(parameter, name, known)
    return tuple(name for name in known if name in given)
