"""Tables and pictures of the quality study, from results/quality.jsonl."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
from paper_rows import PAPER, THRESHOLDS
from report import RESULTS, table, write

from drsne import DRSNE
from drsne.path import WEIGHTS
from drsne.presets import PATH_RATE, PATH_STEP

ROWS = RESULTS / "quality.jsonl"
PATH = {"weights": list(WEIGHTS), "step": PATH_STEP, "rate": PATH_RATE, "from": "the fit at 0"}  # part of such rows
CHOOSING, REPORTING = (0, 1, 2), (3, 4, 5)
SCORES = ("trustworthiness", "concentration_correlation", "density_rank_correlation")
RIVALS = 23  # three of the paper's on each of seven sets, two measured on MNIST
SPREAD = np.array([0.01, 0.05, 0.05])  # what counts as one step of each score when points are compared
MODES = ("drsne, input", "drsne, embedding", "drsne, both")
PLAIN = ("drsne, input", "drsne, both, no contrast")  # the exponent 1 in both spaces
PROTOCOL = "drsne, both"  # the mode whose constrained choice is held against the paper's DR-SNE
Row = dict[str, Any]
Setting = tuple[str, float]  # method, weight


def read() -> list[Row]:
    """All rows that are there, but for those of our maps along another path than today's."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    return [row for row in rows if row.get("path", PATH) == PATH]


def means(name: str, rows: list[Row], seeds: tuple[int, ...]) -> dict[Setting, np.ndarray]:
    """Mean scores of every setting on a set that has all of the seeds."""
    values: dict[Setting, dict[int, list[float]]] = defaultdict(dict)
    for row in rows:
        if row["set"] == name and row["seed"] in seeds:
            values[row["method"], row["weight"]][row["seed"]] = [row[score] for score in SCORES]
    return {key: np.mean(list(found.values()), axis=0) for key, found in values.items() if len(found) == len(seeds)}


def our_means(
    name: str, rows: list[Row], seeds: tuple[int, ...], modes: tuple[str, ...] = MODES
) -> dict[Setting, np.ndarray]:
    found = means(name, rows, seeds)
    return {key: value for key, value in found.items() if key[0] in modes and key[1] in WEIGHTS}


def rivals(name: str, rows: list[Row]) -> dict[str, np.ndarray]:
    """Density-aware points to be at least as good as: the paper's, or on MNIST those measured beside ours."""
    if name in PAPER:
        return {f"paper's {method}": np.array(scores) for method, scores in PAPER[name].items()}
    measured = means(name, rows, CHOOSING)
    out = {}
    for method in ("DensMAP", "paper preset"):
        some = {key: value for key, value in measured.items() if key[0] == method}
        if some:
            out[method] = some[constrained(some, THRESHOLDS[name])]
    return out


def constrained(points: dict[Setting, np.ndarray], least: float) -> Setting:
    """The paper's choice: the largest concentration correlation among the trustworthy, or the most trustworthy."""
    allowed = {key: value for key, value in points.items() if value[0] >= least}
    if not allowed:
        return max(points, key=lambda key: points[key][0])
    return max(allowed, key=lambda key: allowed[key][1])


def nearest_to(points: dict[Setting, np.ndarray], rival: np.ndarray) -> Setting:
    """The setting whose worst score against a rival is best."""
    return max(points, key=lambda key: float(((points[key] - rival) / SPREAD).min()))


def protocol_choice(name: str, points: dict[Setting, np.ndarray]) -> Setting:
    some = {key: value for key, value in points.items() if key[0] == PROTOCOL and key[1] > 0}
    return constrained(some, THRESHOLDS[name])


def _triple(scores: np.ndarray) -> str:
    return "{:.4f} / {:.3f} / {:.3f}".format(*scores)


def _mode(method: str) -> str:
    return method.removeprefix("drsne, ")


def _setting(setting: Setting) -> str:
    return f"{_mode(setting[0])}, {setting[1]:g}"


def domination(rows: list[Row]) -> str:
    lines, met, total = [], 0, 0
    for name in THRESHOLDS:
        points, fresh = our_means(name, rows, CHOOSING), our_means(name, rows, REPORTING)
        for rival, theirs in rivals(name, rows).items() if points else ():
            reported = {key: value for key, value in points.items() if key in fresh}
            if not reported:
                continue
            setting = nearest_to(reported, theirs)
            better = bool((fresh[setting] >= theirs).all())
            short = ", ".join(
                f"{label} {gap:+.3f}"
                for label, gap in zip(("TW", "CC", "rho_S"), fresh[setting] - theirs, strict=True)
                if gap < 0
            )
            met, total = met + better, total + 1
            lines.append(
                [name, rival, _triple(theirs), _setting(setting), _triple(fresh[setting]), short if short else "yes"]
            )
    header = ["data", "rival", "its TW / CC / rho_S", "our mode, lambda", "our TW / CC / rho_S", "at least as good"]
    missing = "" if total == RIVALS else f" ({RIVALS - total} of the {RIVALS} are not measured yet.)"
    weights = ", ".join(f"{w:g}" for w in WEIGHTS)
    return (
        f"**{met} of {RIVALS}.**{missing} Three modes at {len(WEIGHTS)} weights, the same for all data: {weights}.\n\n"
        + table(header, lines)
    )


def protocol(rows: list[Row]) -> str:
    lines = []
    for name in PAPER:
        points, fresh = our_means(name, rows, CHOOSING), our_means(name, rows, REPORTING)
        if not points:
            continue
        setting, theirs = protocol_choice(name, points), np.array(PAPER[name]["DR-SNE"])
        if setting in fresh:
            gain = fresh[setting] - theirs
            lines.append(
                [
                    name,
                    THRESHOLDS[name],
                    _triple(theirs),
                    _setting(setting),
                    _triple(fresh[setting]) + ("" if fresh[setting][0] >= THRESHOLDS[name] else " (TW below)"),
                    f"{gain[1]:+.3f}",
                    f"{gain[2]:+.3f}",
                ]
            )
    return table(["data", "least TW", "paper's DR-SNE", "our mode, lambda", "ours", "CC", "rho_S"], lines)


def without_contrast(rows: list[Row]) -> str:
    """How many rivals are matched with the exponent 1 in both spaces, on the seeds that choose."""
    if not any(row["method"] == PLAIN[1] for row in rows):
        return ""
    found = [
        bool((points[nearest_to(points, theirs)] >= theirs).all())
        for name in THRESHOLDS
        if (points := our_means(name, rows, CHOOSING, PLAIN))
        for theirs in rivals(name, rows).values()
    ]
    return (
        f"With the paper's exponent in both spaces ({' and '.join(_mode(mode) for mode in PLAIN)}; seeds 0 to 2, on "
        f"which settings are chosen): {sum(found)} of {len(found)}."
    )


def default(rows: list[Row]) -> str:
    lines, weight = [], DRSNE().density_weight
    for name in THRESHOLDS:
        fits = means(name, rows, CHOOSING + REPORTING)
        plain, ours = fits.get(("drsne, fits", 0.0)), fits.get(("drsne, fits", weight))
        if plain is not None and ours is not None:
            lines.append([name, _triple(plain), _triple(ours), *(f"{gap:+.4f}" for gap in ours - plain)])
    return table(["data", "lambda = 0", f"lambda = {weight:g}", "TW", "CC", "rho_S"], lines)


def bought(rows: list[Row], drop: float = 0.01) -> str:
    """What each mode shows of density for a little trustworthiness: the weight with the largest CC within ``drop``."""
    lines = []
    for name in THRESHOLDS:
        points = our_means(name, rows, CHOOSING)
        plain = points.get((MODES[0], 0.0))
        if plain is None:
            continue
        cells = [f"{plain[1]:.3f} / {plain[2]:.3f}"]
        for mode in MODES:
            some = {key: value for key, value in points.items() if key[0] == mode and value[0] >= plain[0] - drop}
            if not some:
                cells.append("")
                continue
            best = max(some, key=lambda key: some[key][1])
            cells.append(f"{best[1]:g}: {some[best][1]:.3f} / {some[best][2]:.3f}")
        lines.append([name, *cells])
    return table(["data", "lambda = 0", *(f"{_mode(mode)}, lambda: CC / rho_S" for mode in MODES)], lines)


def everything(rows: list[Row]) -> str:
    names = [name for name in THRESHOLDS if means(name, rows, CHOOSING)]
    found = {name: means(name, rows, CHOOSING) for name in names}
    settings = sorted({key for points in found.values() for key in points}, key=lambda key: (_order(key[0]), key[1]))
    lines = []
    for setting in settings:
        cells = [_triple(found[name][setting]) if setting in found[name] else "" for name in names]
        lines.append([setting[0], f"{setting[1]:g}", *cells])
    return table(["method", "weight", *names], lines)


def _order(method: str) -> int:
    known = (
        "t-SNE",
        "UMAP",
        "PaCMAP",
        "DensMAP",
        "paper preset",
        "drsne, fits",
        "drsne, input",
        "drsne, embedding",
        "drsne, both",
        "drsne, both, no contrast",
    )
    return known.index(method)


STYLE = {
    "drsne, input": ("o-", "tab:blue"),
    "drsne, embedding": ("o-", "tab:green"),
    "drsne, both": ("o-", "tab:red"),
    "drsne, both, no contrast": ("o-", "tab:pink"),
    "DensMAP": ("s--", "tab:purple"),
    "paper preset": ("D--", "tab:brown"),
    "t-SNE": ("X", "black"),
    "UMAP": ("P", "0.45"),
    "PaCMAP": ("v", "tab:olive"),
}
MARKS = {"DensMAP": "s", "DenSNE": "^", "DR-SNE": "D"}


def pictures(rows: list[Row]) -> list[str]:
    """Trade-off curves, all methods in one picture: trustworthiness against each density score."""
    import matplotlib.pyplot as plt

    names = [name for name in THRESHOLDS if means(name, rows, CHOOSING)]
    files = []
    for column, label, file in (
        (1, "concentration correlation (29)", "quality_cc.png"),
        (2, "density rank correlation (30)", "quality_rho.png"),
    ):
        figure, axes = plt.subplots(2, 4, figsize=(17, 8.4), layout="constrained")
        for axis, name in zip(axes.flat, names, strict=False):
            points = means(name, rows, CHOOSING)
            plain = points.get(("drsne, input", 0.0))
            for method, (style, colour) in STYLE.items():
                some = sorted((w, value) for (m, w), value in points.items() if m == method)
                if method in MODES and plain is not None and (not some or some[0][0] > 0):
                    some.insert(0, (0.0, plain))
                if some:
                    xy = np.array([[value[column], value[0]] for _, value in some])
                    axis.plot(xy[:, 0], xy[:, 1], style, color=colour, ms=5, lw=1.4, label=method)
            for method, scores in PAPER.get(name, {}).items():
                axis.plot(
                    scores[column], scores[0], MARKS[method], mfc="none", mec="tab:orange", ms=9, mew=1.8,
                    ls="none", label=f"paper: {method}",
                )  # fmt: skip
            axis.set(title=name, xlabel=label, ylabel="trustworthiness (10)")
            axis.grid(alpha=0.3)
        for axis in axes.flat[len(names) :]:
            axis.set_visible(False)
        handles: dict[str, Any] = {}
        for axis in axes.flat:
            handles |= {text: handle for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6, frameon=False)
        figure.savefig(RESULTS / file, dpi=90)
        plt.close(figure)
        files.append(file)
    return files


def report() -> None:
    """Write results/quality.md and the pictures."""
    rows = read()
    files = pictures(rows)
    write(
        "quality",
        "Quality",
        "python benchmarks/quality.py",
        "TW is trustworthiness at 10 neighbours, CC concentration correlation at 29, rho_S density rank correlation at "
        "30. Perplexity 30, k = 30, maps of drsne.density_path, the same weights for all data. Settings were chosen on "
        "seeds 0 to 2; what stands in the first two tables are means over seeds 3 to 5.",
        "## At least as good as each density-aware method, on all three scores at once\n\n" + domination(rows),
        without_contrast(rows),
        "## The paper's protocol: the largest CC with TW at or above a threshold\n\nOne mode for all data.\n\n"
        + protocol(rows),
        "## Fits with the default weight against lambda = 0 (seeds 0 to 5)\n\n" + default(rows),
        "## What .01 of trustworthiness buys: the largest CC within it (seeds 0 to 2)\n\n" + bought(rows),
        "\n\n".join(f"![{file}]({file})" for file in files),
        "## Every setting, means over seeds 0 to 2 (TW / CC / rho_S)\n\n" + everything(rows),
    )
