"""One page with all studies, made from the rows: the paper's claims, whether they hold, every table and figure.

The page refers to no other file. The same rows and pictures always give the same page.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from drsne_paper import claims, studies
from drsne_paper.document import Block, Figure, Heading, Table, Text, anchors
from drsne_paper.pages import html, render
from drsne_paper.rows import Row
from drsne_paper.study import Selection

TITLE = "DR-SNE: the paper's experiments, repeated"
MARKS = ("<!-- claims: made by drsne report -->", "<!-- end of claims -->")  # before and after the table in a document
_PAPER = (
    'This page shows the experiments of the paper "DR-SNE: Density-Regularized Stochastic Neighbor Embedding" (M. '
    "Kazanskii), repeated with the package `drsne`. Numbers are compared with those of the paper and of the authors' "
    "repository ([maksimkazanskii/DR-SNE](https://github.com/maksimkazanskii/DR-SNE) at bf3a87b). `drsne report` makes "
    "everything here from the rows in this folder, one for each run: tables, verdicts, and the counts below."
)
_COLOURS = (
    "In tables, a difference is ours minus the paper's. It is blue if ours is larger and orange if ours is smaller; "
    "the colour is stronger for larger differences, up to 0.1. A colour does not mean better or worse. The best mean "
    "of a score on a data set is bold. On narrow screens the paper's number and the difference are below the score."
)
_QUICK = (
    "**A quick look.** These are the quick runs, on a few hundred points with few values. They show that everything "
    "works, and say nothing about the paper."
)


_SUMMARY = "Rule and numbers"


class Part(NamedTuple):
    """A study on the page."""

    name: str
    description: str
    folder: Path
    rows: list[Row]
    wanted: int  # the number of rows when the study is complete
    blocks: list[Block]

    @property
    def complete(self) -> bool:
        """Return whether all runs were made and none of them failed."""
        return len(self.rows) - self.failed >= self.wanted

    @property
    def failed(self) -> int:
        """Return how many runs failed."""
        return sum(bool(row.get("error")) for row in self.rows)

    @property
    def title(self) -> str:
        """Return the text of the first heading."""
        headings = [block.text for block in self.blocks if isinstance(block, Heading)]
        return headings[0] if headings else self.name


def write(folder: Path, output: Path, *, quick: bool = False, max_mb: float = 5.0) -> int:
    """Write the page of the results in ``folder`` to the file ``output``, and return its size in bytes."""
    if output.is_dir():
        raise ValueError(f"output must be a file; got the folder {str(output)!r}. Add the name of a file.")
    text = page(folder, quick=quick, max_mb=max_mb)
    output.parent.mkdir(parents=True, exist_ok=True)
    _write_whole(output, text)
    return len(text.encode())


def _write_whole(file: Path, text: str) -> None:
    """Write a file in such a way that an interrupted call leaves the old file unchanged."""
    part = file.with_name(f"{file.name}.part{os.getpid()}")
    try:
        part.write_bytes(text.encode())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def page(folder: Path, *, quick: bool = False, max_mb: float = 5.0) -> str:
    """Return the page, as HTML.

    Parameters
    ----------
    folder : Path
        The folder of ``drsne reproduce``. Each study has a folder in it, which holds its ``rows.jsonl``.
    quick : bool, default=False
        Whether to show the quick runs, which are in folders whose names end with ``-quick``.
    max_mb : float, default=5.0
        The largest size that the page may have, in millions of bytes.

    Returns
    -------
    str
        HTML that refers to no other file.
    """
    from markupsafe import Markup

    if not 0 < max_mb < math.inf:
        raise ValueError(f"max_mb must be a finite number above 0; got {max_mb!r}.")
    parts = _parts(folder, quick)
    text = render(
        "report.html",
        title=TITLE,
        style=Markup((files("drsne_paper") / "report.css").read_text(encoding="utf-8")),
        head=Markup(html(_head(parts, quick), Path())),
        studies=[_study(part) for part in parts],
        summary=_SUMMARY,
        **_claims(parts),
    )
    size = len(text.encode()) / 1e6
    if size > max_mb:
        raise ValueError(
            f"The page has {size:.2f} MB, more than max_mb={max_mb:g}. Its largest pictures are {_largest(parts)}. "
            "Draw them smaller, or pass a larger --max-mb."
        )
    return text


def claims_table(folder: Path) -> str:
    """Return the table of claims as Markdown: the claim, the verdict with its rule and numbers folded, the command."""
    body = []
    for part in _parts(folder, quick=False):
        for claim in claims.load(part.name):
            found = _verdicts(claim, part)
            words = [f"{f'{subject}: ' if subject else ''}**{one.word}{_so_far(one, part)}**" for subject, one in found]
            numbers = [f"{f'{subject}: ' if subject else ''}{one.numbers}" for subject, one in found if one.numbers]
            rule = "<br>".join([f"Rule: {claim.criterion}.", *numbers])
            folded = f"<details><summary>{_SUMMARY}</summary>{rule}</details>"
            command = f"`drsne reproduce {part.name}`"
            body.append([f"{claim.text} ({claim.where}.)", "<br>".join(words) + folded, command])
    lines = [["claim of the paper", "verdict", "command"], ["---"] * 3, *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def update_claims(document_file: Path, folder: Path) -> None:
    """Write the table of claims of the results in ``folder`` between the marks of a Markdown document."""
    before, after = split_at_claims(document_file)
    _write_whole(document_file, f"{before}{MARKS[0]}\n\n{claims_table(folder)}\n\n{MARKS[1]}{after}")


def split_at_claims(document_file: Path) -> tuple[str, str]:
    """Return the text before and after the marks of a document, which must contain each mark once."""
    if not document_file.is_file():
        raise ValueError(f"docs must be a Markdown file; got {str(document_file)!r}, which is not a file.")
    text = document_file.read_text(encoding="utf-8")
    if [text.count(mark) for mark in MARKS] != [1, 1] or text.index(MARKS[0]) > text.index(MARKS[1]):
        raise ValueError(
            f"docs must contain the line {MARKS[0]} once, and after it {MARKS[1]} once, because the table is written "
            f"between them; got {str(document_file)!r}, which does not. Add these lines."
        )
    return text.split(MARKS[0])[0], text.split(MARKS[1])[1]


def _parts(folder: Path, quick: bool) -> list[Part]:
    """Return all studies, including those without rows."""
    suffix = "-quick" if quick else ""
    if not folder.is_dir():
        raise ValueError(
            f"folder must be a folder with results of drsne reproduce; got {str(folder)!r}, which does not exist. "
            "Check the path."
        )
    out = []
    for name in studies.names():
        known, here = studies.load(name), folder / f"{name}{suffix}"
        runs, rows = known.load_results(here, quick=quick)
        expected = {key for run in known.parts(Selection(quick=quick)) for key in run.all_keys()}
        wanted = len(expected | {row["key"] for row in rows})
        blocks: list[Block] = known.blocks(runs, rows, here) if rows else [Heading(name.capitalize(), 1)]
        out.append(Part(name, known.description, here, rows, wanted, blocks))
    if not any(part.rows for part in out):
        command = f"drsne reproduce {out[0].name}{' --quick' if quick else ''}"
        raise ValueError(
            f"folder must hold rows of a study, such as {out[0].folder}/rows.jsonl; got {str(folder)!r}, which holds "
            f"none. Run {command} first."
        )
    return out


def _head(parts: Sequence[Part], quick: bool) -> list[Block]:
    """Return the head of the page: its subject, the number of rows, the versions and the time."""
    blocks: list[Block] = [Text(_PAPER), *([Text(_QUICK)] if quick else []), Text(_COLOURS)]
    header = ["study", "subject", "rows", "failed", "time of the runs", "commits"]
    body = []
    for part in parts:
        commits = Counter(str(row.get("commit") or "unknown") for row in part.rows)
        listed = ", ".join(f"{commit} ({count})" for commit, count in sorted(commits.items()))
        line = [
            f"[{part.name}](#{part.name})",
            part.description,
            f"{len(part.rows)} of {part.wanted}",
        ]
        body.append([*line, *((str(part.failed), duration(seconds(part.rows)), listed) if part.rows else "---")])
    total = sum(len(part.rows) for part in parts)
    spent = duration(sum(seconds(part.rows) for part in parts))
    blocks += [
        Heading("The runs"),
        Text(
            f"There are {total} rows, which took {spent} in total, on one thread each except for run times on all "
            "threads. A search for neighbours that several runs share counts once; loading and scoring do not count."
        ),
        Table(header, body, "The studies, their rows and the time of their runs"),
        Text(f"Made with {_versions(parts)}."),
    ]
    return blocks


def _versions(parts: Sequence[Part]) -> str:
    """Return a list of the package versions that the rows record."""
    versions: dict[str, set[str]] = {}
    for part in parts:
        for row in part.rows:
            for name, version in row.get("versions", {}).items():
                versions.setdefault(name, set()).add(version)
    listed = [f"{name} {' and '.join(sorted(some))}" for name, some in sorted(versions.items())]
    return ", ".join(listed) or "unknown versions"


def seconds(rows: Sequence[Row]) -> float:
    """Return the total time of the runs. Searches on the same data that took the same time are counted once."""
    total, searches = 0.0, set[tuple[str, float]]()
    for row in rows:
        for name, value in row.get("seconds", {}).items():
            if name == "neighbors":
                searches.add((row.get("dataset", ""), value))
            else:
                total += value
    return total + sum(value for _, value in sorted(searches))


def duration(value: float) -> str:
    """Return a number of seconds in words."""
    minutes = round(value / 60)
    if value < 60:
        return f"{value:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _claims(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the table of claims in the order of the studies; the verdict of a study without rows is "not run"."""
    by_name = {part.name: part for part in parts}
    order = dict.fromkeys([*by_name, *studies.names(), *claims.names()])
    lines, words = [], Counter[str]()
    for study in order:
        for claim in claims.load(study):
            found = _verdicts(claim, by_name.get(study))
            words[found[0][1].word] += 1
            lines.append(_claim(claim, found, study, by_name.get(study)))
    counts = ", ".join(f"{words[word]} {_counted(word, words[word])}" for word in claims.WORDS if words[word])
    explanation = (
        f"Of {words.total()} claims, {counts}. Each verdict is computed from the rows by a rule of ours, which is "
        "folded below the verdict together with the numbers. A verdict is about the paper's method as its code has it "
        '(`drsne_code`), unless it names something else. "Not tested": no run here can judge the claim. "So far": not '
        "all runs of the study have been made."
    )
    return {"claims": lines, "explanation": explanation, "caption": "Claims of the paper and whether they hold"}


def _counted(word: str, count: int) -> str:
    """Return the verb that expresses a verdict on one or several claims."""
    many = {claims.HOLDS: "hold", claims.IN_PART: "hold in part", claims.FAILS: "do not hold"}
    if word not in many:
        return f"{'is' if count == 1 else 'are'} {word}"
    return word if count == 1 else many[word]


Verdicts = list[tuple[str, claims.Verdict]]  # the subject of each verdict ("" for the paper's method), and the verdict


def _verdicts(claim: claims.Claim, part: Part | None) -> Verdicts:
    """Return the verdicts on a claim: the first one, and those about other methods."""
    rows = [row for row in part.rows if not row.get("error")] if part else []
    judges = {claim.subject: claim.judge, **claim.also}
    return [(subject, judge(rows) if rows else claims.not_run()) for subject, judge in judges.items()]


def _claim(claim: claims.Claim, found: Verdicts, study: str, part: Part | None) -> dict[str, Any]:
    """Return a line of the table: the words of the verdicts, with the rule and the numbers folded below them."""
    kinds = {claims.HOLDS: "holds", claims.IN_PART: "part", claims.FAILS: "fails"}
    return {
        "text": claim.text,
        "where": claim.where,
        "criterion": claim.criterion,
        "study": study,
        "verdicts": [
            {"subject": subject, "word": one.word, "so_far": _so_far(one, part), "kind": kinds.get(one.word, "none")}
            for subject, one in found
        ],
        "numbers": [f"{f'{subject}: ' if subject else ''}{one.numbers}" for subject, one in found if one.numbers],
    }


def _so_far(found: claims.Verdict, part: Part | None) -> str:
    final = (claims.NOT_RUN, claims.NOT_TESTED)
    return " so far" if part and not part.complete and found.word not in final else ""


def _study(part: Part) -> dict[str, Any]:
    """Return the section of a study, and its headings for the table of contents."""
    from markupsafe import Markup

    prefix = f"{part.name}-"
    headings = [block for block in part.blocks if isinstance(block, Heading)]
    named = zip(anchors(part.blocks, prefix=prefix), headings, strict=True)
    return {
        "name": part.name,
        "title": part.title,
        "headings": [(name, block.text) for name, block in named if block.level > 1],
        "body": Markup(html(part.blocks, part.folder, prefix=prefix, deeper=1)),
        "has_rows": bool(part.rows),
    }


def _largest(parts: Sequence[Part]) -> str:
    found = sorted(_pictures(parts), reverse=True)[:3]
    return ", ".join(f"{name} ({size / 1e6:.2f} MB)" for size, name in found) or "none"


def _pictures(parts: Sequence[Part]) -> Iterator[tuple[int, str]]:
    """Yield the size and the name of every picture on the page."""
    for part in parts:
        for block in part.blocks:
            if isinstance(block, Figure) and (file := part.folder / block.file).exists():
                yield 4 * -(-file.stat().st_size // 3), str(file)
