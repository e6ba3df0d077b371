"""Time and score whole fits at default settings: ours, plain t-SNE and the peers.

    python benchmarks/speed.py [--sizes 1000 5000] [--methods drsne umap pacmap] [--threads -1] [--limit 1200]
    python benchmarks/speed.py --report                   write only the tables and the picture

The rules, fixed before the first run:

- Every method is called without arguments other than the number of threads and, for the t-SNE implementations, the
  seed. A seed would limit UMAP, densMAP, ScaleMAP and PaCMAP to one thread. densMAP and ScaleMAP are switched on with
  their flag.
- Data: MNIST (50 principal components) up to 70,000 points, Covertype for 280,000 and 100 Gaussians in 50 dimensions
  for 1,000,000. The time of a fit includes everything from the data to the map.
- Each fit is in a process of its own, after a fit of the same method on fewer points that compiles what the method
  compiles. Methods take turns, so that a change of the machine's speed affects all of them.
- Three fits up to 70,000 points, one for larger data. scikit-learn's t-SNE is run up to 70,000 points.
- From 70,000 points on, a fit of a peer is stopped after three times the median of our fits, or after --limit
  seconds. The tables then show "> seconds", and there are no scores. A stopped fit is not repeated. Four rows of a
  million points (PaCMAP, densMAP and ScaleMAP on two of 16 cores, openTSNE on two cores) were not written by this
  program, because it ended before it wrote them. They were entered by hand, with lower bounds from the times at which
  the fits began and ended.
- On a machine with many cores, several methods can run at the same time, each pinned to two cores (with taskset).
- A fit is repeated if other programs used more than 15 % of a core on its cores during the fit, at most twice. If the
  slowest of three fits takes 25 % longer than the fastest, two more are run. Tables show medians and ranges.
- The maps are scored after the clock has stopped: the five scores of 2,000 sampled points, with neighbours among all
  points.

Each fit is a line of results/speed.jsonl, written when it ends: a killed study continues where it stopped. Packages
that are not installed are skipped with a message. ``pip install 'drsne[peers]' scalemap==0.1.2`` adds all of them.
MNIST and Covertype are read from DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import large
from runner import RESULTS, Results, rules, table, write


class Method(NamedTuple):
    """A method: its package, its title, the call without ``fit``, and the largest data on which it is run."""

    package: str
    title: str
    call: str
    most: int = 10**7


METHODS = {
    "drsne": Method("drsne", "DRSNE()", "drsne.DRSNE(random_state=seed, n_jobs=threads)"),
    "drsne_plain": Method(
        "drsne", "DRSNE(density_weight=0)", "drsne.DRSNE(density_weight=0, random_state=seed, n_jobs=threads)"
    ),
    "umap": Method("umap", "UMAP", "umap.UMAP(n_jobs=threads)"),
    "densmap": Method("umap", "densMAP", "umap.UMAP(densmap=True, n_jobs=threads)"),
    "pacmap": Method("pacmap", "PaCMAP", "pacmap.PaCMAP(random_state=None)"),
    "scalemap": Method("scaleMAP", "ScaleMAP", "scaleMAP.UMAP(scalemap=True, n_jobs=threads)"),
    "opentsne": Method("openTSNE", "openTSNE", "openTSNE.TSNE(random_state=seed, n_jobs=threads)"),
    "sklearn": Method(
        "sklearn.manifold", "scikit-learn", "sklearn.manifold.TSNE(random_state=seed, n_jobs=threads)", 70_000
    ),
}
DATA = {280_000: "covertype", 1_000_000: "gaussians"}  # MNIST for all other sizes
SIZES = (1000, 2000, 5000, 10_000, 20_000, 70_000, 280_000, 1_000_000)
MANY = 100_000  # smallest number of points with one repeat
LARGE, PATIENCE = 70_000, 3  # smallest number of points with a limit, and the limit in units of our time
SEEDS = (3, 4, 5, 6, 7)
REPEATS, MORE = 3, 5  # number of fits, and the number if they differ much
SPREAD, FOREIGN = 1.25, 0.15  # slowest over fastest fit, and cores used by other programs, that lead to more fits
ROWS = Results("speed", "method", "n", "repeat", "threads", "cores", "of_cores")
SCORES = {"trustworthiness": "TW", "continuity": "Cont", "cc": "CC", "rho30": "rho30", "rho5": "rho5"}
PROGRAM = """
import json, os, resource, signal, sys, time, warnings
import numpy as np
import {package}
warnings.simplefilter("ignore")
X, seed, threads, limit = np.load(sys.argv[1]), *map(int, sys.argv[2:5])

def fitted(data):
    model = {call}
    return np.asarray(model.fit(data) if "{package}" == "openTSNE" else model.fit_transform(data))

def busy():  # seconds that other programs have used on the cores of this one
    used = {{f"cpu{{core}}" for core in os.sched_getaffinity(0)}}
    lines = [line.split() for line in open("/proc/stat")]
    fields = np.sum([list(map(int, line[1:9])) for line in lines if line[0] in used], axis=0)
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    of_all = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
    return of_all - own.ru_utime - own.ru_stime - children.ru_utime - children.ru_stime

small = X[:: max(1, len(X) // 5000)][:5000]  # enough for all packages to use their code for large data
fitted(small)
if "drsne" in sys.modules and len(X) > len(small):
    drsne.DRSNE(random_state=seed, n_jobs=threads, max_iter=50).fit(X[:10000])
    drsne.DRSNE(density_weight=0, random_state=seed, n_jobs=threads, max_iter=50).fit(X[:10000])
    if len(X) >= 50000:
        drsne.DRSNE(random_state=seed, n_jobs=threads, max_iter=5).fit(X[:50000])
before, start = busy(), time.perf_counter()
signal.alarm(limit)  # ends the process; 0 stands for no limit
Y = fitted(X)
signal.alarm(0)
seconds = time.perf_counter() - start
foreign = (busy() - before) / seconds
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 2**20
from drsne import metrics
sample = dict(max_samples=2000, random_state=0)
scores = dict(
    trustworthiness=metrics.trustworthiness(X, Y, 10, **sample),
    continuity=metrics.continuity(X, Y, 10, **sample),
    cc=metrics.concentration_correlation(X, Y, 29, **sample),
    rho30=metrics.density_rank_correlation(X, Y, 30, **sample),
    rho5=metrics.density_rank_correlation(X, Y, 5, **sample),
)
scores = {{name: round(float(score), 5) for name, score in scores.items()}}
found = dict(seconds=dict(total=round(seconds, 3)), foreign=round(foreign, 3), peak_gb=round(peak, 2))
print(json.dumps(dict(found, **scores)))
"""


def data(n: int, folder: Path) -> Path:
    """Return the file of the data, made if it is not there."""
    name = DATA.get(n, "mnist")
    path = folder / f"{name}-{n}.npy"
    if not path.exists():
        np.save(path, large(name, n))
    return path


def timed(method: str, path: Path, seed: int, threads: int, limit: int) -> dict[str, Any]:
    """Return the seconds and the scores of one fit, made in a process of its own and stopped after ``limit`` seconds.

    A limit of 0 stands for no limit.
    """
    program = PROGRAM.format(package=METHODS[method].package, call=METHODS[method].call)
    words = [sys.executable, "-c", program, str(path), str(seed), str(threads), str(limit)]
    found: dict[str, Any] = {}
    for _ in range(3):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == -signal.SIGALRM:
            return {"seconds": {"total": float(limit)}, "stopped": True}
        if done.returncode:
            raise RuntimeError(f"{method} failed on {path.name}: {done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        if found["foreign"] <= FOREIGN:
            break
    return found


def wanted(rows: list[dict[str, Any]], n: int) -> int:
    """Return how many fits of a method there should be, after those in ``rows``."""
    if n >= MANY or any("stopped" in row for row in rows):
        return 1
    taken = [row["seconds"]["total"] for row in rows]
    return MORE if len(taken) >= REPEATS and max(taken) > SPREAD * min(taken) else REPEATS


def run(sizes: list[int], names: list[str], threads: int, folder: Path, most: int) -> None:
    """Run the fits that are missing. Those of peers take at most ``most`` seconds, with 0 for the rule of the study."""
    names = [name for name in names if _installed(METHODS[name])]
    for n in sizes:
        for repeat in range(MORE):
            for name in names:
                rows = [row for row in _here(threads) if (row["method"], row["n"]) == (name, n)]
                if repeat < len(rows) or repeat >= wanted(rows, n) or n > METHODS[name].most:
                    continue
                allowed = most if most and not name.startswith("drsne") else limit(_here(threads), name, n)
                found = timed(name, data(n, folder), SEEDS[repeat], threads, allowed)
                cores = {"cores": len(os.sched_getaffinity(0)), "of_cores": os.cpu_count()}
                row = {"method": name, "n": n, "repeat": repeat, "threads": threads, **cores}
                ROWS.append({**row, **found})
                print(f"{name}, n = {n}, repeat {repeat}: {found['seconds']['total']:.2f} s", flush=True)


def limit(rows: list[dict[str, Any]], method: str, n: int) -> int:
    """Return the seconds after which a fit is stopped, or 0."""
    ours = times(rows, "drsne", n)
    return int(PATIENCE * np.median(ours)) if ours and n >= LARGE and not method.startswith("drsne") else 0


def _installed(method: Method) -> bool:
    there = importlib.util.find_spec(method.package) is not None
    if not there:
        print(f"{method.title} is skipped: the package {method.package} is not installed.")
    return there


def _here(threads: int) -> list[dict[str, Any]]:
    """Return the rows of this number of threads and of the cores of this program."""
    return _rows(len(os.sched_getaffinity(0)), os.cpu_count() or 1, threads)


def _rows(cores: int, of_cores: int, threads: int) -> list[dict[str, Any]]:
    """Return the rows of a machine with ``of_cores`` cores, of which each fit may use ``cores``."""
    wanted = (cores, of_cores, threads)
    return [row for row in ROWS.read() if (row["cores"], row["of_cores"], row["threads"]) == wanted]


def times(rows: list[dict[str, Any]], method: str, n: int) -> list[float]:
    """Return the seconds of the fits of a method."""
    return sorted(row["seconds"]["total"] for row in rows if (row["method"], row["n"]) == (method, n))


def report() -> None:
    """Write the tables and the picture of every machine in the rows."""
    parts = []
    for cores, of_cores, threads in sorted({(row["cores"], row["of_cores"], row["threads"]) for row in ROWS.read()}):
        rows = _rows(cores, of_cores, threads)
        sizes = sorted({row["n"] for row in rows})
        shown = [name for name in METHODS if any(row["method"] == name for row in rows)]
        seconds, ratios = [], []
        for method in shown:
            found = [times(rows, method, n) for n in sizes]
            ended = [_n_stopped(rows, method, n) for n in sizes]
            stopped = [2 * count >= len(each) > 0 for count, each in zip(ended, found, strict=True)]
            shown_times = [_range(each, count) for each, count in zip(found, ended, strict=True)]
            seconds.append([METHODS[method].title, *shown_times])
            ours = [times(rows, "drsne", n) for n in sizes]
            pairs = zip(ours, found, strict=True)
            shown_ratios = [_ratio(a, b) for a, b in pairs]
            marked = [
                "< " + each if stop and each != "-" else each for each, stop in zip(shown_ratios, stopped, strict=True)
            ]
            ratios.append([METHODS[method].title, *marked])
        header = ["method", *(f"{n:,}" for n in sizes)]
        title = f"{cores} cores" if cores == of_cores else f"{cores} of {of_cores} cores for each fit"
        name = f"speed_{cores}" if cores == of_cores else f"speed_{cores}_of_{of_cores}"
        parts += [
            f"## {title}\n\n{_machines(rows)}\n\nSeconds of a whole fit: median (fastest to slowest).",
            table(header, seconds),
            "The time of `DRSNE()` divided by that of each method.",
            table(header, ratios),
            "Peak memory in GB from 70,000 points on, the interpreter and all packages included.",
            table(
                ["method", *(f"{n:,}" for n in sizes if n >= LARGE)],
                [[METHODS[each].title, *(_peak(rows, each, n) for n in sizes if n >= LARGE)] for each in shown],
            ),
            "Means of the scores of the same fits.",
            table(["n", "method", *SCORES.values()], _scores(rows, sizes, shown)),
        ]
        _draw(rows, sizes, shown, RESULTS / f"{name}.png")
        parts.append(f"![Seconds of a whole fit by the number of points]({name}.png)")
    parts = [f"The rules:\n\n{rules(__doc__, 'Each fit is a line')}", *parts]
    write("speed", "Speed of whole fits", "python benchmarks/speed.py", *parts, rows=ROWS.read())


def _machines(rows: list[dict[str, Any]]) -> str:
    """Return the machines of some rows, each with the versions of drsne and the sizes of its rows."""
    of_machine: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_machine.setdefault(row["machine"], []).append(row)
    lines = []
    for where, mine in of_machine.items():
        parts = []
        for n in sorted({row["n"] for row in mine}):
            some = [row for row in mine if row["n"] == n]
            methods = [METHODS[name].title for name in METHODS if any(row["method"] == name for row in some)]
            commits = dict.fromkeys(row["commit"] for row in some)
            parts.append(f"  - {n:,} points: {', '.join(methods)} (drsne at {', '.join(commits)})")
        lines.append("\n".join([f"- {where}", *parts]))
    return "The machines, and the rows that were measured on each of them:\n\n" + "\n".join(lines)


def _n_stopped(rows: list[dict[str, Any]], method: str, n: int) -> int:
    return sum("stopped" in row for row in rows if (row["method"], row["n"]) == (method, n))


def _range(taken: list[float], stopped: int) -> str:
    """Return the median and the range of times, the largest ``stopped`` of which are lower bounds."""
    if not taken:
        return "-"
    middle, least, most = (
        f"{each:.3g}" if each < 1000 else f"{each:,.0f}" for each in (np.median(taken), taken[0], taken[-1])
    )
    middle = f"> {middle}" if 2 * stopped >= len(taken) else middle
    return middle if len(taken) == 1 else f"{middle} ({least} to {'> ' if stopped else ''}{most})"


def _ratio(ours: list[float], other: list[float]) -> str:
    return f"{np.median(ours) / np.median(other):.2f}" if ours and other else "-"


def _peak(rows: list[dict[str, Any]], method: str, n: int) -> str:
    found = [row["peak_gb"] for row in rows if (row["method"], row["n"]) == (method, n) and "peak_gb" in row]
    return f"{max(found):.2f}" if found else "-"


def _scores(rows: list[dict[str, Any]], sizes: list[int], shown: list[str]) -> list[list[str]]:
    lines = []
    for n in sizes:
        for name in shown:
            found = [row for row in rows if (row["method"], row["n"]) == (name, n) and "stopped" not in row]
            if found:
                means = [f"{np.mean([row[score] for row in found]):.4f}" for score in SCORES]
                lines.append([f"{n:,}", METHODS[name].title, *means])
    return lines


def _draw(rows: list[dict[str, Any]], sizes: list[int], shown: list[str], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5), layout="constrained")
    ax = figure.subplots()
    for name in shown:
        stopped = {n for n in sizes if 2 * _n_stopped(rows, name, n) >= max(1, len(times(rows, name, n)))}
        points = [(n, np.median(times(rows, name, n))) for n in sizes if times(rows, name, n)]
        complete = [point for point in points if point[0] not in stopped]
        ours = name.startswith("drsne")
        xy = zip(*complete, strict=True) if complete else ((), ())
        (line,) = ax.plot(*xy, marker="o", lw=2.5 if ours else 1.2, label=METHODS[name].title)
        limits = [point for point in points if point[0] in stopped]
        if limits:
            ax.plot(*zip(*limits, strict=True), "^", ms=9, mfc="none", color=line.get_color())
    ax.set(xscale="log", yscale="log", xlabel="points", ylabel="seconds of a whole fit, default settings")
    ax.set_title("Triangles: fits that were stopped, so their times are lower bounds", fontsize=9, loc="left")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    figure.savefig(path, dpi=100)


def main() -> None:
    """Run what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--threads", type=int, default=-1)
    parser.add_argument("--limit", type=int, default=0, help="seconds after which a fit of a peer is stopped")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the data are kept")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        run(options.sizes, options.methods, options.threads, options.folder, options.limit)
    report()


if __name__ == "__main__":
    main()
