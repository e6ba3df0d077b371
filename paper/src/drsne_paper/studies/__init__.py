"""Studies. Each file ``studies/<name>.py`` exposes ``STUDY``, with its runs, and the tables and figures of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from drsne_paper import checks
from drsne_paper.document import Block, Figure, markdown
from drsne_paper.registry import Registry
from drsne_paper.rows import Row, Rows, make_folder
from drsne_paper.runner import has_failed, rows_of_study, run
from drsne_paper.study import EVERYTHING, Selection, Study

NAMES = ("main", "ablations", "tradeoff", "anomaly", "runtime", "theory")  # in the order of "all" and of the report


class PaperStudy(ABC):
    """A part of the paper: what ``drsne reproduce <name>`` runs and writes."""

    name: ClassVar[str]
    description: ClassVar[str]
    sequential: ClassVar[bool] = False  # whether its runs are timed and therefore made one after the other
    keeps_maps: ClassVar[bool] = True  # whether maps are kept, because the figures need them
    seeded: ClassVar[bool] = True  # whether seeds can be selected

    @abstractmethod
    def parts(self, selection: Selection = EVERYTHING) -> tuple[Study, ...]:
        """Return all runs, or only those of the selected data sets, methods and seeds."""

    def displayed(self, selection: Selection) -> tuple[Study, ...]:
        """Return the runs for the tables and figures: all runs of the study, and those of other selected seeds."""
        default = self.parts(Selection(quick=selection.quick))
        if not selection.seeds:
            return default
        seeds = sorted({*selection.seeds, *(seed for part in default for seed in part.seeds)})
        return self.parts(Selection(quick=selection.quick, seeds=seeds))

    def failed(self, row: Row) -> bool:
        """Return whether the run of a row failed. Such a run is repeated on request."""
        return has_failed(row)

    def write(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:  # noqa: B027
        """Write tables in formats other than Markdown, if the study has any."""

    @abstractmethod
    def draw(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> None:
        """Write the figures."""

    @abstractmethod
    def blocks(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> list[Block]:
        """Return the text, tables and figures of the results."""

    def reproduce(
        self,
        parts: Sequence[Study],
        folder: Path,
        *,
        displayed: Sequence[Study] | None = None,
        jobs: int = 1,
        client: Any = None,
        retry: bool = False,
        verbose: int = 1,
    ) -> str:
        """Make the missing runs of ``parts``, write the tables and figures of ``displayed``, and return the tables."""
        make_folder(folder)
        rows = Rows(folder / "rows.jsonl")
        maps = folder / "maps" if self.keeps_maps else None
        processes = 1 if self.sequential else jobs
        cluster = None if self.sequential else client
        run(parts, rows, jobs=processes, client=cluster, maps=maps, verbose=verbose, retry=retry, failed=self.failed)
        displayed = parts if displayed is None else displayed
        return self.publish(displayed, rows_of_study(displayed, rows.read()), folder)

    def publish(self, parts: Sequence[Study], rows: list[Row], folder: Path) -> str:
        """Write figures and tables, and return the tables. Without matplotlib, figures are skipped with a warning."""
        self.write(parts, rows, folder)
        if find_spec("matplotlib") is None:
            checks.warn("Skipped the figures, which need matplotlib: pip install 'drsne[plot]'.")
        else:
            self.draw(parts, rows, folder)
        blocks = self.blocks(parts, rows, folder)
        text = markdown([one for one in blocks if not isinstance(one, Figure) or (folder / one.file).exists()])
        (folder / "table.md").write_text(text, encoding="utf-8")
        return text

    def load_results(self, folder: Path, *, quick: bool = False) -> tuple[tuple[Study, ...], list[Row]]:
        """Return the runs that have rows in ``folder``, including runs with additional seeds, and these rows."""
        existing = Rows(folder / "rows.jsonl").read()
        seeds = sorted({row["seed"] for row in existing if "seed" in row}) if self.seeded else []
        rows = rows_of_study(self.displayed(Selection(quick=quick, seeds=seeds or None)), existing)
        seeds = sorted({row["seed"] for row in rows}) if self.seeded else []
        return self.displayed(Selection(quick=quick, seeds=seeds or None)), rows


REGISTRY: Registry[PaperStudy] = Registry("drsne_paper.studies", "STUDY", "study", NAMES)


def names() -> list[str]:
    """Return the names of the studies, in the order of the paper."""
    return REGISTRY.names()


def load(name: str) -> PaperStudy:
    """Return the study in ``studies/<name>.py``."""
    return REGISTRY.load(name)
