"""Studies: one a file, ``studies/<name>.py``, which exposes ``STUDY``: what is run, and what is made of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import ClassVar

from drsne import checks
from drsne.experiments.document import Block, Figure, markdown
from drsne.experiments.rows import Row, Rows, make_folder
from drsne.experiments.runner import of_study, run
from drsne.experiments.study import USUAL, Asked, Study

ORDER = ("main", "ablations", "tradeoff", "anomaly", "runtime", "theory")  # of "all" and of the report


class PaperStudy(ABC):
    """A part of the paper: what ``drsne reproduce <name>`` runs and writes."""

    name: ClassVar[str]
    description: ClassVar[str]
    alone: ClassVar[bool] = False  # whether its runs are timed, and so made one after the other
    keeps_maps: ClassVar[bool] = True  # whether its figures need them
    seeded: ClassVar[bool] = True  # whether it has seeds to choose among

    @abstractmethod
    def parts(self, asked: Asked = USUAL) -> tuple[Study, ...]:
        """The runs, all of them or those of some data sets, methods and seeds."""

    def shown(self, asked: Asked) -> tuple[Study, ...]:
        """What tables and figures are of, whatever part of it was asked for: all runs that have rows."""
        usual = self.parts(Asked(quick=asked.quick))
        if not asked.seeds:
            return usual
        seeds = sorted({*asked.seeds, *(seed for part in usual for seed in part.seeds)})
        return self.parts(Asked(quick=asked.quick, seeds=seeds))

    def write(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:  # noqa: B027
        """Write tables in other formats than Markdown, if there are any."""

    @abstractmethod
    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the figures."""

    @abstractmethod
    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """What there is to tell: text, tables, figures."""

    def reproduce(
        self,
        parts: Sequence[Study],
        folder: Path,
        *,
        shown: Sequence[Study] | None = None,
        jobs: int = 1,
        retry: bool = False,
        verbose: int = 1,
    ) -> str:
        """Run what is missing of ``parts``, write tables and figures of what is ``shown``, and return the tables."""
        make_folder(folder)
        kept = Rows(folder / "rows.jsonl")
        maps = folder / "maps" if self.keeps_maps else None
        run(parts, kept, jobs=1 if self.alone else jobs, maps=maps, verbose=verbose, retry=retry)
        shown = parts if shown is None else shown
        return self.publish(shown, of_study(shown, kept.read()), folder)

    def publish(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> str:
        """Write figures and tables, and return the tables; without matplotlib figures are left out, which is told."""
        self.write(parts, rows, folder)
        if find_spec("matplotlib") is None:
            checks.warn("Figures are left out: they need matplotlib, pip install 'drsne[plot]'.")
        else:
            self.draw(parts, rows, folder)
        blocks = self.blocks(parts, rows, folder)
        text = markdown([one for one in blocks if not isinstance(one, Figure) or (folder / one.file).exists()])
        (folder / "table.md").write_text(text, encoding="utf-8")
        return text

    def kept(self, folder: Path, *, quick: bool = False) -> tuple[tuple[Study, ...], list[Row]]:
        """What is in ``folder``: runs of the usual seeds and of others that have rows, and these rows."""
        found = Rows(folder / "rows.jsonl").read()
        every = self.shown(Asked(quick=quick, seeds=sorted({row["seed"] for row in found if "seed" in row}) or None))
        rows = of_study(every, found)
        return self.shown(Asked(quick=quick, seeds=sorted({row["seed"] for row in rows}) or None)), rows


def names() -> list[str]:
    """Names of the studies in this folder, in the order of the paper."""
    found = {module.name for module in iter_modules(__path__) if not module.name.startswith("_")}
    return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


def load(name: str) -> PaperStudy:
    """The study in ``studies/<name>.py``."""
    study: PaperStudy = import_module(f"drsne.experiments.studies.{name}").STUDY
    return study
