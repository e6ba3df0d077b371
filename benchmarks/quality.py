"""Compare the quality of maps with that of the peers: defaults against defaults, and our path against every setting.

    python benchmarks/quality.py [--jobs 2] [--methods drsne umap] [--datasets mnist] [--seeds 3 4 5] [--defaults]
    python benchmarks/quality.py --report             write only results/quality.md and the pictures

The rules of the comparison, fixed before its maps were made:

- All results are means over seeds 3, 4 and 5. Our defaults were chosen on seeds 0 to 2 of the same data sets (for the
  contrast, seeds 0 and 1 of five of them), so the seeds are held out, but the data sets are not. The methods of others
  keep the defaults of their authors.
- Default against default, on fifteen sets: the eight of the paper, five sets whose radii differ little (two samples of
  words, two of cells, features of images), and two kinds of noise. Every method is called without arguments other than
  the seed. densMAP and ScaleMAP are switched on with their flag, and keep the strength that their documentation gives
  as the default. A second map of ours has the weight 3. Means are over the sets without the noises and the smaller
  sample of words.
- Our path against every setting of every density-aware peer, on the eight sets of the paper: a setting (data set,
  method, value of its density parameter) is *matched* if one map of ``drsne.density_path(X)`` with default settings is
  at least as good on trustworthiness, concentration correlation and the density rank correlations at 30 and at 5
  neighbours, all at once. Programs of others (ScaleMAP, densMAP) are counted apart from methods that we implemented.
  The scores of both are means over the three seeds, and ours are all taken at the same weight. They are compared
  without rounding. The weights of the path were extended twice after earlier versions of this comparison
  (results/quality.md says how, and counts by other rules). Nothing else of ours is chosen by looking at a rival.
- The default against every setting: the same rule with the one map of ``DRSNE()`` in place of the path.

Each run is a line of results/quality.jsonl, in the format of the studies of the paper (``drsne_paper.rows``),
written when it is scored: a killed study continues where it stopped. Maps are kept in the folder of --maps for the
pictures.

Methods that are not installed are skipped with a message. ``pip install 'drsne[peers]' scalemap==0.1.2`` adds all of
them. PBMC also needs scanpy. Fashion-MNIST, MNIST, PBMC and Shuttle are read from DRSNE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from data import EXTENDED
from quality_methods import METHODS, SEEDS, rows, studies
from quality_report import report

from drsne_paper import methods, run

MAPS = Path(tempfile.gettempdir()) / "drsne-quality" / "maps"


def main() -> None:
    """Make the missing runs that are selected, unless only the report is wanted, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="write only the tables and pictures")
    parser.add_argument("--defaults", action="store_true", help="run only the settings of the table of defaults")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--datasets", nargs="+", choices=list(EXTENDED), default=list(EXTENDED))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    parser.add_argument("--maps", type=Path, default=MAPS, help="folder of the maps")
    options = parser.parse_args()
    if not options.report:
        for name in [name for name in options.methods if methods.missing(METHODS[name])]:
            print(f"{name} is skipped: {', '.join(methods.missing(METHODS[name]))} is not installed.")
            options.methods.remove(name)
        selected = studies(
            tuple(options.datasets), tuple(options.methods), tuple(options.seeds), only_defaults=options.defaults
        )
        run(selected, rows(), jobs=options.jobs, maps=options.maps)
    report(options.maps)


if __name__ == "__main__":
    main()
