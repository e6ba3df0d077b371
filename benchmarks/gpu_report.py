"""The rows of gpu.py, the floors of the times, and the tables of results/gpu.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from runner import Results, made_of, sources, table, write

SIZES = (70_000, 280_000, 1_000_000, 10_000_000)
DATA = {70_000: "mnist", 280_000: "covertype"}  # 100 Gaussians for more points, and parts of MNIST for fewer
ASKED = {70_000: 3.0, 1_000_000: 12.0, 10_000_000: 120.0}  # seconds
NAMES = {"cuda": "cuda", "cpu": "cpu", "exact": "cpu, exact neighbours"}
# How the devices of rows that are not fits begin.
SCORED, SEARCH, CASE = "scores on ", "search on ", "case "
EARLIER = "profile on ", "peer on "  # rows of finished studies (results/gpu_studies.md)
CASES = {"usual": "default", "equal": "100 equal rows", "copies": "1 % copies", "plain": "without Triton"}
ROWS = Results("gpu", "data", "n", "seed", "device")
SCORES = ("trustworthiness", "continuity", "cc", "rho30", "rho5")
PARTS = {
    "neighbours": r"Found .*",
    "affinities": r"Calibrated .*",
    "initial map": r"Made the initial map",
    "t-SNE": r"(\d+) iterations of t-SNE.*",
    "with density": r"(\d+) iterations with the density term.*",
}
# Rates of an H200, for rows without rates of their own: bytes per second of a copy on the device and of one to it, and
# multiplications and additions per second of a product in single precision.
RATES = {"copy": 4.3e12, "to_device": 1e10, "product": 5e13}
CHANGED = "The sources of drsne have changed since that commit. The present version was not timed."
NEIGHBORS = 90  # number of neighbours of a default fit
ALL_PAIRS = 300_000  # largest number of rows of which all pairs are compared
SEARCHED = 8 * 2048  # smallest number of rows to which a row is compared in larger data


def data_name(n: int) -> str:
    """Return the name of the data of this size."""
    return DATA.get(n, "gaussians" if n > min(DATA) else "mnist")


def done(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of the same run with the same version of the package, or None if there is none."""
    found = {each["key"]: each for each in ROWS.read()}.get(ROWS.key(row))
    return found if found is not None and found.get("sources") == sources() else None


def floor_of_iteration(row: dict[str, Any]) -> float:
    """Return the seconds in which an iteration can move its bytes."""
    return (8 * row["pairs"] + 24 * 8 * row["n"]) / _rates(row)["copy"]


def floor(row: dict[str, Any]) -> float:
    """Return the seconds that a whole fit takes at least, by the rule of gpu.py."""
    n, d, rates = row["n"], row.get("columns", 50), _rates(row)
    copies = (8 * n * d + 16 * n + 8 * row["pairs"]) / rates["to_device"]
    products = 2.0 * d * n * (n if n <= ALL_PAIRS else SEARCHED) / rates["product"]
    affinities = (12 * NEIGHBORS * n + 8 * row["pairs"]) / rates["copy"]
    return float(copies + products + affinities + sum(row["iterations"].values()) * floor_of_iteration(row))


def _rates(row: dict[str, Any]) -> dict[str, float]:
    return {**RATES, **row.get("rates", {})}


def write_report(rules: str) -> None:
    """Write the tables."""
    ROWS.drop_replaced()
    rows = [row for row in ROWS.read() if not row["device"].startswith(EARLIER)]
    timed = _of_one_version([row for row in rows if not row["device"].startswith((SCORED, SEARCH, CASE))])
    parts = ["The rules:\n\n" + rules, *_fits(timed)]
    for begin, section in ((SEARCH, _searches), (CASE, _cases), (SCORED, _compared)):
        mine = [row for row in rows if row["device"].startswith(begin)]
        parts += section(mine) if mine else []
    devices = ", ".join(dict.fromkeys(row["device"] for row in timed))
    write("gpu", f"Fits on a GPU ({devices})", "python benchmarks/gpu.py", *parts, rows=rows)


def _of_one_version(timed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the fits of each size that were made by the version of the package of the last one."""
    newest = {(row["device"], row["n"]): row.get("sources") for row in ROWS.rows.read()}
    return [row for row in timed if row.get("sources") == newest[row["device"], row["n"]]]


def _fits(timed: list[dict[str, Any]]) -> list[str]:
    lines, scores, repeated = [], [], any("repeats" in row for row in timed)
    for n, device in sorted({(row["n"], row["device"]) for row in timed}):
        mine = [row for row in timed if (row["n"], row["device"]) == (n, device)]
        last, seconds = mine[-1], sorted(row["total_s"] for row in mine)
        of_parts = [f"{last['parts'].get(part, 0.0):.2f}" for part in PARTS]
        steps = [f"{1e3 * last['parts'][part] / count:.2f}" for part, count in sorted(last["iterations"].items())]
        steps += ["-"] * (2 - len(steps))  # t-SNE comes first
        recall = "exact" if last["recall"] is None else f"{last['recall']:.3f}"
        error = f"{last['force_error']:.4f}" if "force_error" in last else "-"
        lines.append(
            [
                f"{n:,}",
                last["data"],
                _median(seconds),
                f"{ASKED[n]:.0f}" if n in ASKED else "-",
                f"{floor(last):.2f}",
                *of_parts,
                *steps,
                f"{1e3 * floor_of_iteration(last):.2f}",
                last.get("peak_gb", "-"),
                recall,
                error,
                *([{True: "yes", False: "no"}.get(last.get("repeats"), "-")] if repeated else []),
            ]
        )
        scores += [[f"{n:,}", *(f"{row[name]:.4f}" for name in SCORES)] for row in mine if "cc" in row]
    header = ["n", "data", "s, median (range)", "target", "floor", *PARTS]
    header += ["ms per t-SNE iteration", "ms with density", "floor, ms", "GB", "recall", "error"]
    header += ["repeats"] if repeated else []
    return [
        "## Whole fits\n\nThe table shows the seconds of the fits and of the parts of the last one, and the "
        "milliseconds of an iteration. 'Target' is the time that was asked for before the first measurement, 'GB' is "
        "the peak memory on the device, and 'error' is the relative error of the forces. The fits were made on:\n\n"
        + made_of(timed)
        + ("" if all(row["sources"] == sources() for row in timed) else f"\n\n{CHANGED}"),
        table(header, lines),
        "## Scores of these fits\n\nThe scores are those of sampled points.",
        table(["n", *SCORES], scores),
    ]


def _median(seconds: list[float]) -> str:
    middle = f"{seconds[len(seconds) // 2]:.1f}"
    return f"{middle} ({seconds[0]:.1f} to {seconds[-1]:.1f})" if len(seconds) > 1 else middle


def _searches(rows: list[dict[str, Any]]) -> list[str]:
    """Return the section about the search for neighbours in data that are hard to search."""
    lines = []
    for row in rows:
        recall = "exact" if row["recall"] is None else f"{row['recall']:.3f}"
        lines.append([f"{row['n']:,}", row["data"], f"{row['total_s']:.1f}", recall, f"{row['found']:.4f}"])
    return [
        "## Searches for 90 neighbours\n\nThe table shows the seconds of a search. "
        "The data are uniform noise in 20 and 50 dimensions, and 100 Gaussians. 'Recall' is what the search measured, "
        "or 'exact' if it compared all rows. 'Found' is the share of the true neighbours of 500 other rows.",
        table(["n", "data", "s", "recall", "found"], lines),
    ]


def _cases(rows: list[dict[str, Any]]) -> list[str]:
    """Return the section about fits without Triton and of data with equal rows."""
    lines = []
    for row in sorted(rows, key=lambda row: (row["n"], list(CASES).index(row["case"]))):
        found = f"{row['total_s']:.1f}", row.get("peak_gb", "-"), f"{row['smallest_scale']:.1e}"
        lines.append([f"{row['n']:,}", row["data"], CASES[row["case"]], *found, row["kl"], row["concentration"]])
    return [
        "## Equal rows, and plain PyTorch\n\nThe table shows seconds, gigabytes and losses of one fit each, "
        "by the rules above. In '100 equal rows', 100 rows have the same values. In '1 % copies', one "
        "percent of the rows are in such groups of 100. Some scales are then so small that the repulsion is summed in "
        "double precision. Without Triton, plain PyTorch does the same as the Triton programs. Losses can be compared "
        "between fits of the same data only, so those with equal rows differ from the others.",
        table(["n", "data", "case", "s", "GB", "smallest scale", "KL", "concentration loss"], lines),
    ]


def _compared(compared: list[dict[str, Any]]) -> list[str]:
    """Return the section about the scores of the GPU and of the CPU."""
    body, differences = [], []
    made = ", ".join(sorted({row["sources"] for row in compared}))
    for name in sorted({row["data"] for row in compared}):
        found = {device: _means(compared, name, device) for device in NAMES.values()}
        for device, (n_seeds, means, errors) in found.items():
            if n_seeds:
                both = [f"{m:.4f} ({s:.4f})" for m, s in zip(means, errors, strict=True)]
                body.append([name, device, n_seeds, *both])
            if device != "cuda" and n_seeds and found["cuda"][0]:
                away, noise = found["cuda"][1] - means, np.hypot(found["cuda"][2], errors)
                both = [f"{m:+.4f} ({s:.4f})" for m, s in zip(away, noise, strict=True)]
                differences.append([name, device, *both])
    return [
        "## GPU and CPU\n\nThe table shows the means of the scores over the seeds, with their standard errors in "
        f"brackets. Digests of the sources: {made}.",
        table(["data", "device", "seeds", *SCORES], body),
        "These are the differences, GPU minus CPU, with their standard errors. All fits of a data set start from the "
        "same initial map, so the standard errors can be too small.",
        table(["data", "compared with", *SCORES], differences),
    ]


def _means(rows: list[dict[str, Any]], data: str, device: str) -> tuple[int, Any, Any]:
    """Return the number of fits, the means of their scores, and the standard errors of these means."""
    mine = [row for row in rows if row["data"] == data and row["device"] == f"{SCORED}{device}"]
    scores = np.array([[row[score] for score in SCORES] for row in mine])
    if len(mine) < 2:
        return len(mine), scores.sum(axis=0), np.zeros(len(SCORES))
    return len(mine), scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(mine))
