"""The rows of the programs whose names begin with gpu, the floors of the times, and the tables of results/gpu.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from runner import Results, made_of, sources, table, write

SIZES = (70_000, 280_000, 1_000_000, 10_000_000)
DATA = {70_000: "mnist", 280_000: "covertype"}  # 100 Gaussians for more points, and parts of MNIST for fewer
ASKED = {70_000: 3.0, 1_000_000: 12.0, 10_000_000: 120.0}  # seconds
NAMES = {"cuda": "cuda", "cpu": "cpu", "exact": "cpu, exact neighbours"}
# How the devices of rows that are not fits begin.
SCORED, PROFILED, PEER, SEARCH, CASE = "scores on ", "profile on ", "peer on ", "search on ", "case "
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
STAGES = (*(f"t-SNE, {part} third" for part in ("first", "second", "last")), "with density")  # of profiles
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
    rows = ROWS.read()
    others = SCORED, PROFILED, PEER, SEARCH, CASE
    timed = _of_one_version([row for row in rows if not row["device"].startswith(others)])
    parts = ["The rules:\n\n" + rules, *_fits(timed)]
    for begin, section in (
        (PROFILED, _profiles),
        (SEARCH, _searches),
        (CASE, _cases),
        (PEER, _peers),
        (SCORED, _compared),
    ):
        mine = [row for row in rows if row["device"].startswith(begin)]
        if mine:
            parts += section(mine) if begin != PEER else section(mine, timed)
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
    out = [
        "## Whole fits\n\nThe table shows the seconds of the fits and of the parts of the last one, and the "
        "milliseconds of an iteration. 'Target' is the time that was asked for before the first measurement, 'GB' is "
        "the peak memory on the device, and 'error' is the relative error of the forces. The fits were made on:\n\n"
        + made_of(timed)
        + ("" if all(row["sources"] == sources() for row in timed) else f"\n\n{CHANGED}"),
        table(header, lines),
        "## Scores of these fits\n\nThe scores are those of sampled points.",
        table(["n", *SCORES], scores),
    ]
    meshes = [row["fixed_kernel_errors"] for row in timed if "fixed_kernel_errors" in row]
    if meshes:
        out += [
            "## Errors of the forces with the fixed kernel, for the map of 1,000,000 points\n\n"
            "An error of 1 is as large as the forces themselves. The kernel decreases within one unit of the map, but "
            "a box of a mesh is many units wide in so large a map.",
            table(["sums over", "relative error"], [[name, f"{error:.4f}"] for name, error in meshes[-1].items()]),
        ]
    return out


def _median(seconds: list[float]) -> str:
    middle = f"{seconds[len(seconds) // 2]:.1f}"
    return f"{middle} ({seconds[0]:.1f} to {seconds[-1]:.1f})" if len(seconds) > 1 else middle


def _profiles(rows: list[dict[str, Any]]) -> list[str]:
    """Return the section about what an iteration spends its time on."""
    out = [
        "## Where the time of an iteration goes\n\nEvery profile is from one fit. 'Iteration' is the first of the 24 "
        "timed iterations, and 'ms' is their mean time, without the profiler. The parts of an iteration do not "
        "overlap. 'Busy' is the mean time of an iteration in which a kernel runs on the device. It is that of the next "
        "24 iterations, which ran with the profiler, and these can take longer than the timed ones. 'Idle' is the "
        "share of the time in which no kernel runs. It is not given if 'busy' exceeds 'ms'.\n\n"
        "The points are divided into *leaves* of 32 points, and leaves are grouped into larger cells, which are nodes "
        "of a tree. Leaves that are *wide*, because their points belong to different groups, are divided further. For "
        "each leaf, the repulsion of *far* nodes is summed node by node, and that of *near* leaves point by point. The "
        "near leaves of a leaf are divided into *pieces* of at most 32 leaves, which are summed in parallel."
    ]
    for row in sorted(rows, key=lambda row: row["n"]):
        device, windows = row["device"].removeprefix(PROFILED), row["windows"]
        made = f"The digest of the sources was {row['sources']}." if "sources" in row else ""
        out.append(f"### {row['n']:,} points of {row['data']} on {device}\n\n{made}".rstrip())
        names = list(dict.fromkeys(name for window in windows for name in window["parts"]))
        names.sort(key=lambda name: -max(window["parts"].get(name, 0.0) for window in windows))
        lines = []
        for window in windows:
            busy, ms = window["busy_ms"], window["ms"]
            idle = "-" if busy is None or busy > ms else f"{100 * (1.0 - busy / ms):.0f} %"
            line = [window["phase"], window["iteration"], f"{ms:.2f}", "-" if busy is None else f"{busy:.2f}", idle]
            lines.append([*line, *(f"{window['parts'].get(name, 0.0):.2f}" for name in names)])
        out.append(table(["phase", "iteration", "ms", "busy", "idle", *names], lines))
        out += [_programs(window) for window in windows]
        if row["events"]:
            out.append(_counts(row))
    return out


def _programs(window: dict[str, Any]) -> str:
    lines = [[f"`{each['name']}`", f"{each['calls']:.1f}", f"{each['ms']:.3f}"] for each in window["programs"]]
    title = f"These GPU kernels take the most time ({window['phase']}, from iteration {window['profiled']}):"
    others = (
        f"There are {window['kinds']} different kernels. An iteration starts {window['calls']:.0f} kernels on average."
    )
    return f"{title}\n\n{table(['kernel', 'calls', 'ms'], lines)}\n\n{others}"


def _counts(row: dict[str, Any]) -> str:
    """Return the table of what does not depend on the device."""
    found = [(window["phase"], window["iteration"], window["cells"]) for window in row["windows"] if window["cells"]]
    names = list(found[0][2]) if found else []
    cells = [[phase, iteration, *(f"{of[name]:,.0f}" for name in names)] for phase, iteration, of in found]
    kinds = list(dict.fromkeys(name for of in row["events"].values() for name in of))
    stages = [stage for stage in STAGES if stage in row["events"]]
    events = [[stage, *(f"{row['events'][stage].get(name, 0.0):.1f}" for name in kinds)] for stage in stages]
    return (
        "These are the numbers of cells at the end of the iterations above:\n\n"
        f"{table(['phase', 'iteration', *names], cells)}\n\n"
        "This is how often cells and lists of cells were made, for 100 iterations:\n\n"
        f"{table(['iterations', *kinds], events)}"
    )


def _peers(rows: list[dict[str, Any]], timed: list[dict[str, Any]]) -> list[str]:
    """Return the section about other packages on the same device, beside our fits."""
    lines = []
    for n in sorted({row["n"] for row in rows}):
        ours = [row for row in timed if row["n"] == n]
        if ours:
            scored = next((row for row in reversed(ours) if "cc" in row), ours[-1])
            seconds = _median(sorted(row["total_s"] for row in ours))
            lines.append([f"{n:,}", "DRSNE", "-", seconds, *_scores_of(scored), ours[-1].get("peak_gb", "-")])
        for row in (each for each in rows if each["n"] == n):
            seconds = f"{row['total_s']:.1f}" if "total_s" in row else "failed (1)"
            search = row.get("search", "-")
            lines.append([f"{n:,}", row["method"], search, seconds, *_scores_of(row), row.get("peak_gb", "-")])
    versions = ", ".join(dict.fromkeys(f"{row['package']} {row['version']}" for row in rows if "version" in row))
    errors = [f"- {row['n']:,} points, {row['method']}: {row['error']}" for row in rows if "error" in row]
    return [
        "## Other packages on the same device\n\n"
        f"The table shows the seconds from array to array, by the rules of `gpu_peers.py` ({versions}).",
        table(["n", "method", "search", "s", *SCORES, "GB"], lines),
        *(["(1) These fits ended with an error:", "\n".join(errors)] if errors else []),
    ]


def _searches(rows: list[dict[str, Any]]) -> list[str]:
    """Return the section about the search for neighbours in data that are hard to search."""
    lines = []
    for row in rows:
        recall = "exact" if row["recall"] is None else f"{row['recall']:.3f}"
        lines.append([f"{row['n']:,}", row["data"], f"{row['total_s']:.1f}", recall, f"{row['found']:.4f}"])
    return [
        "## Searches for 90 neighbours\n\nThe table shows the seconds of a search, by the rules of `gpu_search.py`. "
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
        "by the rules of `gpu_cases.py`. In '100 equal rows', 100 rows have the same values. In '1 % copies', one "
        "percent of the rows are in such groups of 100. Some scales are then so small that the repulsion is summed in "
        "double precision. Without Triton, plain PyTorch does the same as the Triton programs. Losses can be compared "
        "between fits of the same data only, so those with equal rows differ from the others.",
        table(["n", "data", "case", "s", "GB", "smallest scale", "KL", "concentration loss"], lines),
    ]


def _scores_of(row: dict[str, Any]) -> list[str]:
    return [f"{row[name]:.4f}" if name in row else "-" for name in SCORES]


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
