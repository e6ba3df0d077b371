"""Choose the automatic contrast: how much a map enlarges densities that differ little in the data.

    python benchmarks/contrast.py [--jobs 2] [--parts choose held_out]
    python benchmarks/contrast.py --prepare FOLDER    write the data, for a machine without the packages that read them;
                                                      CONTRAST_DATA=FOLDER then names the folder
    python benchmarks/contrast.py --report            write only results/contrast.md
    python benchmarks/contrast.py --pictures          draw eight sets with the contrast of before, now, and with densMAP

The rule of choice, which was stated before the final rows were made. The maps of the part "choose" give the scores at
fixed contrasts; between these, scores are interpolated. A candidate is a rule that gives every data set a contrast. The
best candidate is the one with the highest mean of CC, rho30 and rho5 over the sets, noise left out, among those with
which

- nothing changes where s, the standard deviation of the log radii, exceeds .25,
- trustworthiness falls at most .004 in the mean and .012 on any set, against the earlier contrast of at most 2, and is
  at least .936 on PBMC cells (.935 was asked for on the held-out seeds),
- fragmentation rises at most .015 in the mean,
- on spheres of uniform density, fragmentation stays below .005 or that of before, and the standard deviation of the
  concentration below 1.15 times that of before.

Five of the choosing sets have data of their own, one has images of Fashion-MNIST that are not in the quality study,
four are parts of the 20,000 words, and five are sets of the quality study, with the seeds 0 and 1. Their noises have
random numbers of their own. The part "held_out" has the fifteen sets of the quality study with the seeds 3 to 5, with
the contrast of before, and with the chosen one at four weights. A first round of the same kind of runs, over more
settings, showed which candidates to compare.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from data import EXTENDED, NOISES, cells, data_home, extended_data, sphere, words
from report import RESULTS, table, write

from drsne.neighbors.search import knn
from drsne.terms.contrast import EVEN, STANDS_OUT, USUAL, local_dimension
from drsne.terms.profile import DEFAULT_SMOOTHING, group_neighbors, profile, repeated
from drsne_paper import Rows, Study, datasets, run
from drsne_paper.methods import Method, Run, Workspace
from drsne_paper.runner import rows_of_study

ROWS = RESULTS / "contrast.jsonl"
FOLDER = os.environ.get("CONTRAST_DATA")
K = 30  # number of neighbours of radii
GRID = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.5, 8.5)
PARTS = {"all": 1.0, "half": 0.5, "none": 0.0}  # the part of the contrast above 2 that the kernel provides
WEIGHTS = (0.3, 1.0, 3.0, 10.0)
SCORES = {
    "trustworthiness": (10, "TW"),
    "continuity": (10, "Cont"),
    "concentration_correlation": (29, "CC"),
    "density_rank_correlation": (30, "rho30"),
    "local_density_rank_correlation": (5, "rho5"),
    "fragmentation": (10, "Frag"),
}
DENSITY = ("concentration_correlation", "density_rank_correlation", "local_density_rank_correlation")


def groups(n: int, d: int, count: int, spread: float, seed: int) -> np.ndarray:
    """Return Gaussian groups whose standard deviations differ by a little."""
    rng = np.random.default_rng(seed)
    centres, scales = 3 * rng.normal(size=(count, d)), np.exp(spread * rng.normal(size=count))
    y = rng.integers(count, size=n)
    return centres[y] + rng.normal(size=(n, d)) * scales[y, None]


def gradient(n: int = 2500, d: int = 12) -> np.ndarray:
    """Return points in a cube with a density that falls along one side."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(n, d))
    X[:, 0] = 3 * rng.beta(1, 3, size=n)
    return X


def kang(condition: str | None = None, n_components: int = 50) -> np.ndarray:
    """Return components of the blood cells of Kang et al. (2018), or of those of one condition."""
    import anndata

    found = anndata.read_h5ad(data_home() / "kang_ifnb_2000.h5ad")
    return cells(found[(found.obs["condition"] == condition).to_numpy()].copy() if condition else found, n_components)


def reduced(X: np.ndarray, d: int) -> np.ndarray:
    """Return principal components."""
    from sklearn.decomposition import PCA

    return PCA(d, random_state=0).fit_transform(X)


def some(X: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return random rows in their order."""
    return X[np.sort(np.random.RandomState(seed).permutation(len(X))[:n])]


CHOOSING: dict[str, Callable[[], np.ndarray]] = {
    "words, rare": lambda: words().X[17000:],
    "words, middle": lambda: words().X[8000:11000],
    "words, any": lambda: some(words().X, 3000, 0),
    "words, 20 components": lambda: reduced(words().X[5000:8000], 20),
    "Kang": kang,
    "Kang, control": lambda: kang("CTRL", 20),
    "12 groups, 40-d": lambda: groups(2400, 40, 12, 0.12, 5),
    "8 groups, 15-d": lambda: groups(2400, 15, 8, 0.15, 6),
    "gradient, 12-d": gradient,
    "Fashion-MNIST, 50-d": lambda: reduced(some(datasets.load("fashion_mnist").X, 2500, 7) / 255.0, 50),
}
SEEN = ("words5k", "pbmc_cells", "4eq", "cifar10_effnet", "pbmc3k")  # of the quality study, with other seeds
CHANCE: dict[str, Callable[[], np.ndarray]] = {
    "sphere, 6-d": lambda: sphere(2500, 7, seed=3),
    "sphere, 10-d": lambda: sphere(3000, 11, seed=77),
    "sphere, 20-d": lambda: sphere(2500, 21, seed=4),
    "Gaussian, 15-d": lambda: np.random.default_rng(5).normal(size=(2500, 15)),
    "cube, 8-d": lambda: np.random.default_rng(8).uniform(size=(2500, 8)),
}
MADE = CHOOSING | CHANCE
PICTURES = """\
Maps of seed 3, coloured by the log radius in the data from dense (dark) to sparse (light), and by type where types \
are known. With the automatic contrast, the dense naive T cells, the sparser monocytes and the sparse NK cells look as \
different as they are, and no type breaks apart. The Gaussian in 30 dimensions looks like one, and the sphere stays \
even. Words still form many small clumps.

![Maps of eight data sets with a contrast of at most 2, the automatic contrast, and by densMAP](contrast_maps.png)"""
DRAWN = ("words20k", "words5k", "pbmc_cells", "4eq", "cifar10_effnet", "pbmc3k", "sphere", "ball")


def load(name: str) -> datasets.Data:
    """Return the data of a run, from the folder of prepared data if there is one."""
    if FOLDER is not None:
        X = np.load(_file(Path(FOLDER), name))["X"].astype(np.float64)
    else:
        X = MADE[name]() if name in MADE else extended_data(name).X
    return datasets.Data(X=X, y=None, name=name, description="", source="benchmarks/contrast.py")


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace(' ', '_').replace(',', '')}.npz"


def spread_of(distances: np.ndarray) -> float:
    """Return s, the standard deviation of the log radii."""
    radii = repeated(distances, group_neighbors(distances)).mean(axis=1)
    return float(np.log(profile(radii, 1.0, DEFAULT_SMOOTHING).radius).std())


@cache
def spread(name: str) -> tuple[float, float, float, float]:
    """Return s, the dimension with its error, and the part of s^2 that chance alone would give."""
    distances = knn(load(name).X, K).distances
    D, error = local_dimension(distances, group_neighbors(distances))
    s = spread_of(distances)
    # The variance of the log of the mean of k distances among points with uniform density in D dimensions.
    return s, D, error, min(1.0, 2.0 * (D + 1.0) / ((D + 2.0) * K * D**2) / s**2)


def before(s: float) -> float:
    """Return the contrast before this study."""
    return float(f"{max(1.0, min(STANDS_OUT / s, USUAL)):.3g}")


def maps(workspace: Workspace, values: Sequence[Any], seed: int) -> Iterator[Run]:
    """Return a map for each contrast, the part of it that the kernel provides, and weight.

    The contrast None stands for the default, and 0 for the one before this study.
    """
    from drsne import DRSNE, Objective

    for value in values:
        contrast, part, weight = value
        chosen = {}
        if contrast == 0.0:
            contrast = before(spread_of(workspace.neighbors(K)[0].distances))
        if contrast is not None:
            power = contrast if contrast <= USUAL else USUAL + part * (contrast - USUAL)
            chosen["objective"] = Objective(embedding_weight=0.7, input_exponent=contrast, scale_exponent=power)
        start = time.perf_counter()
        model = DRSNE(density_weight=weight, random_state=seed, **chosen)
        Y = np.asarray(model.fit_transform(workspace.X), np.float64)
        seconds = {"optimization": time.perf_counter() - start}
        yield Run(value, Y, seconds, {"contrast": model.contrast_, "deviation": float(model.concentration_.std())})


def span(dataset: str, X: Any, Y: np.ndarray, labels: Any) -> dict[str, float]:
    """Return the full range of a map over its 1 to 99 % range, along the worse axis."""
    return {"span": float((np.ptp(Y, axis=0) / np.ptp(np.quantile(Y, (0.01, 0.99), axis=0), axis=0)).max())}


def study(part: str) -> Study:
    """Return the runs of a part."""
    if part == "choose":
        grid = [(contrast, share, 1.0) for contrast in GRID for share in PARTS.values() if contrast > USUAL or share]
        grid += [(contrast, 0.5, weight) for contrast in GRID[::2] for weight in WEIGHTS if weight != 1.0]
        sets, seeds = (*MADE, *SEEN), (0, 1)
    else:
        grid = [(0.0, 1.0, 1.0), *((None, None, weight) for weight in WEIGHTS)]
        sets, seeds = tuple(EXTENDED), (3, 4, 5)
    method = Method(title="drsne", parameter=("contrast", "part", "weight"), grid=tuple(dict.fromkeys(grid)), maps=maps)
    scores = tuple((name, k) for name, (k, _) in SCORES.items())
    return Study(
        name="contrast", datasets=sets, methods=(part,), seeds=seeds, scores=scores, data=load,
        variants={part: method}, extra=span,
    )  # fmt: skip


class Curves:
    """Scores of the part "choose" at any contrast, interpolated between the contrasts of the grid."""

    def __init__(self) -> None:
        self._values: dict[tuple[Any, ...], list[dict[str, float]]] = {}
        for row in rows_of_study(study("choose"), Rows(ROWS).read()):
            value = (row["dataset"], *(row["params"][name] for name in ("contrast", "part", "weight")))
            self._values.setdefault(value, []).append(row["metrics"] | row["details"])

    def at(self, name: str, contrast: float, part: float, score: str, weight: float = 1.0) -> float:
        """Return the mean of a score over the seeds."""
        grid = [each for each in GRID if self._key(name, each, part, weight) in self._values]
        means = [np.mean([one[score] for one in self._values[self._key(name, each, part, weight)]]) for each in grid]
        return float(np.interp(contrast, grid, means))

    def _key(self, name: str, contrast: float, part: float, weight: float) -> tuple[Any, ...]:
        usual = 1.0 if weight == 1.0 else 0.5  # at the usual contrast, the kernel provides all of it
        return name, contrast, usual if contrast <= USUAL else part, weight


def rule(target: float, limit: float = 0.5, steepness: float = 3.0, soft: float = 0.0, denoised: bool = False) -> Any:
    """Return a candidate: a function of a data set whose result is a contrast."""

    def contrast(name: str) -> float:
        s, D, _, chance = spread(name)
        top = limit * D * ((1.0 - chance) if denoised else 1.0)
        wanted = min(USUAL * (EVEN / s) ** steepness, target / s)
        raised = min(wanted, top) if not soft else (wanted**-soft + top**-soft) ** (-1.0 / soft)
        return max(1.0, min(STANDS_OUT / s, max(USUAL, raised)))

    return contrast


CANDIDATES: dict[str, tuple[Any, float]] = {"contrast at most 2 (before)": (rule(0.0), 1.0)} | {
    f"T = {target}, kernel {part}": (rule(target), PARTS[part])
    for target in (0.4, 0.5, 0.6, 0.7, 0.8)
    for part in ("all", "half")
}
CANDIDATES |= {
    "T = 0.7, kernel none": (rule(0.7), 0.0),
    "T = 0.7, half, limit D": (rule(0.7, limit=1.0), 0.5),
    "T = 0.7, half, limit D / 3": (rule(0.7, limit=1.0 / 3.0), 0.5),
    "T = 0.7, half, soft limit": (rule(0.7, soft=4.0), 0.5),
    "T = 0.7, half, limit without noise": (rule(0.7, denoised=True), 0.5),
}


def candidates(curves: Curves) -> str:
    """Return the table of the candidates, the best of those that meet the rule first."""
    sets = (*CHOOSING, *SEEN)
    spheres = [name for name in CHANCE if name.startswith("sphere")]
    earlier, share = CANDIDATES["contrast at most 2 (before)"]
    lines = []
    for title, (contrast, part) in CANDIDATES.items():
        found = {
            name: {s: curves.at(name, contrast(name), part, s) for s in (*SCORES, "span", "deviation")}
            for name in MADE | dict.fromkeys(SEEN)
        }
        was = {name: {s: curves.at(name, earlier(name), share, s) for s in (*SCORES, "deviation")} for name in found}
        falls = [was[name]["trustworthiness"] - found[name]["trustworthiness"] for name in sets]
        mean = {score: float(np.mean([found[name][score] for name in sets])) for score in (*SCORES, "span")}
        density = float(np.mean([mean[score] for score in DENSITY]))
        rise = mean["fragmentation"] - float(np.mean([was[name]["fragmentation"] for name in sets]))
        ratio = max(found[name]["deviation"] / was[name]["deviation"] for name in spheres)
        torn = all(found[n]["fragmentation"] <= max(0.005, was[n]["fragmentation"]) for n in spheres)
        cells = found["pbmc_cells"]["trustworthiness"] >= 0.936
        meets = np.mean(falls) <= 0.004 and max(falls) <= 0.012 and cells and rise <= 0.015 and ratio <= 1.15 and torn
        lines.append(
            [
                density,
                title,
                f"{density:.3f}",
                *(f"{mean[s]:.3f}" for s in (*SCORES, "span")),
                f"{np.mean(falls):.4f}",
                f"{max(falls):.4f}",
                f"{ratio:.2f}",
                "yes" if meets else "no",
            ]
        )
    lines.sort(key=lambda line: (line[-1] == "no", -line[0]))
    return table(
        [
            "candidate",
            "density",
            *(label for _, label in SCORES.values()),
            "span",
            "fall of TW",
            "largest",
            "spheres",
            "meets the rule",
        ],
        [line[1:] for line in lines],
    )


def by_set(curves: Curves) -> str:
    """Return what is gained if every set has the contrast of its own trade-off, at the same mean fall of TW."""
    chosen, part = CANDIDATES["T = 0.7, kernel half"]
    sets, fine = (*CHOOSING, *SEEN), np.arange(2.0, 8.51, 0.1)
    tables = {
        name: {s: [curves.at(name, c, part, s) for c in fine] for s in ("trustworthiness", *DENSITY)} for name in sets
    }
    fall = np.mean([tables[n]["trustworthiness"][0] - curves.at(n, chosen(n), part, "trustworthiness") for n in sets])
    density = {n: np.mean([tables[n][s] for s in DENSITY], axis=0) for n in sets}
    ours = np.mean([np.mean([curves.at(n, chosen(n), part, s) for s in DENSITY]) for n in sets])
    for price in np.geomspace(0.1, 100.0, 400):  # the best contrast of every set at one price of trustworthiness
        best = {n: int(np.argmax(density[n] + price * np.array(tables[n]["trustworthiness"]))) for n in sets}
        if np.mean([tables[n]["trustworthiness"][0] - tables[n]["trustworthiness"][best[n]] for n in sets]) <= fall:
            break
    own, low, high = np.mean([density[n][best[n]] for n in sets]), min(best.values()), max(best.values())
    return f"mean density {own:.3f} instead of {ours:.3f}, with contrasts from {fine[low]:.1f} to {fine[high]:.1f}"


def held_out() -> str:
    """Return the scores of the held-out seeds before and now, and how they change with the weight."""
    found: dict[tuple[str, Any], dict[str, float]] = {}
    for row in rows_of_study(study("held_out"), Rows(ROWS).read()):
        value = "before" if row["params"]["contrast"] == 0.0 else row["params"]["weight"]
        here = found.setdefault((row["dataset"], value), {})
        for score, number in (row["metrics"] | row["details"]).items():
            here[score] = here.get(score, 0.0) + number / 3.0
    lines, weights = [], []
    for name, title in EXTENDED.items():
        if (name, "before") not in found:
            continue
        for which, label in (("before", "before"), (1.0, "now")):
            here = found[name, which]
            lines.append(
                [
                    title,
                    label,
                    f"{here['contrast']:.2f}",
                    *(f"{here[s]:.3f}" for s in SCORES),
                    f"{here['span']:.2f}",
                    f"{here['deviation']:.3f}",
                ]
            )
        if all((name, weight) in found for weight in WEIGHTS):
            series = {s: [found[name, weight][s] for weight in WEIGHTS] for s in ("trustworthiness", *DENSITY)}
            drops = [max(a - b for a, b in combinations(series[s], 2)) for s in DENSITY[:2]]
            weights.append(
                [
                    title,
                    *(" / ".join(f"{v:.3f}" for v in series[s]) for s in series),
                    *(f"{max(d, 0.0):.3f}" for d in drops),
                ]
            )
    quiet = [name for name in EXTENDED if name not in NOISES and name != "words5k" and (name, "before") in found]
    for which, label in (("before", "before"), (1.0, "now"), (3.0, "now, weight 3")):
        mean = {
            s: np.mean([found[name, which][s] for name in quiet])
            for s in (*SCORES, "span", "deviation")
            if all((name, which) in found for name in quiet)
        }
        if mean:
            lines.append(
                [
                    "mean without noise and 5,000 words",
                    label,
                    "",
                    *(f"{mean[s]:.3f}" for s in SCORES),
                    f"{mean['span']:.2f}",
                    f"{mean['deviation']:.3f}",
                ]
            )
    labels = [SCORES[s][1] for s in ("trustworthiness", *DENSITY)]
    return (
        table(["data", "", "contrast", *(label for _, label in SCORES.values()), "span", "deviation"], lines)
        + f"\n\nWith the weights {', '.join(map(str, WEIGHTS))}, and the largest fall of CC and of rho30 when the "
        + "weight rises:\n\n"
        + table(["data", *labels, "fall of CC", "fall of rho30"], weights)
    )


def pictures(seed: int = 3) -> None:
    """Draw results/contrast_maps.png: maps coloured by the density of the data, and by type where types are known."""
    import matplotlib.pyplot as plt
    from quality_pictures import draw, log_radius

    from drsne import DRSNE
    from drsne_paper.methods import _peers

    rows = [(name, False) for name in DRAWN] + [(name, True) for name in ("pbmc_cells", "cifar10_effnet")]
    figure, axes = plt.subplots(len(rows), 3, figsize=(10.5, 3.5 * len(rows)), layout="constrained")
    made: dict[str, list[np.ndarray]] = {}
    for line, (name, by_label) in zip(axes, rows, strict=True):
        data = extended_data(name)
        if name not in made:
            fits = [DRSNE(contrast=contrast, random_state=seed) for contrast in (before(spread(name)[0]), "auto")]
            made[name] = [fit.fit_transform(data.X) for fit in fits] + [_peers.densmap(data.X, seed)]
        colour = np.unique(data.y, return_inverse=True)[1] if by_label else log_radius(data.X)
        for axis, Y in zip(line, made[name], strict=True):
            draw(axis, np.asarray(Y, np.float64), colour)
            if by_label:
                axis.collections[0].set_cmap("tab10")
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(EXTENDED[name] + (", by type" if by_label else ""))
    for axis, title in zip(
        axes[0], ("contrast at most 2 (before)", "automatic contrast (now)", "densMAP"), strict=True
    ):
        axis.set_title(title)
    figure.savefig(RESULTS / "contrast_maps.png", dpi=80)


def report() -> None:
    """Write results/contrast.md."""
    curves = Curves()
    names = [*MADE, *EXTENDED]
    sets = table(
        ["data", "s", "D", "error of D", "part of s^2 by chance", "before", "now"],
        [
            [
                name,
                f"{s:.3f}",
                f"{D:.1f}",
                f"{error:.1f}",
                f"{chance:.2f}",
                f"{before(s):.2f}",
                f"{rule(0.7)(name):.2f}",
            ]
            for name in names
            for s, D, error, chance in [spread(name)]
        ],
    )
    write(
        "contrast", "The contrast", "python benchmarks/contrast.py", __doc__.split("\n\n", 2)[2].strip(),
        "Processors differ in the last bits, so the same fit gives slightly different scores on these machines. On one "
        "machine, maps of sets whose contrast does not change are the same bit for bit.",
        f"## The data\n\n{sets}", f"## Candidates\n\nMeans over the sets without noise.\n\n{candidates(curves)}",
        f"If every set had the contrast that is best for itself at a common price of trustworthiness, at the same mean "
        f"fall of TW: {by_set(curves)}. This would need several fits of every data set.",
        f"## Held-out seeds\n\n{held_out()}",
        f"## Pictures\n\n{PICTURES}",
        rows=Rows(ROWS).read(),
    )  # fmt: skip


def main() -> None:
    """Make the missing runs and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="write only the report")
    parser.add_argument("--prepare", type=Path, help="write the data to a folder")
    parser.add_argument("--parts", nargs="+", choices=("choose", "held_out"), default=["choose", "held_out"])
    parser.add_argument("--rows", type=Path, default=ROWS, help="the file of rows")
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    parser.add_argument("--pictures", action="store_true", help="draw the maps of eight sets")
    options = parser.parse_args()
    if options.pictures:
        pictures()
        return
    if options.prepare is not None:
        options.prepare.mkdir(parents=True, exist_ok=True)
        for name in (*MADE, *EXTENDED):
            np.savez_compressed(_file(options.prepare, name), X=load(name).X.astype(np.float32))
        return
    if not options.report:
        for part in options.parts:
            run(study(part), Rows(options.rows), jobs=options.jobs)
    if options.rows == ROWS:
        report()


if __name__ == "__main__":
    main()
