"""Lists of the cells of a map by Triton programs and by plain PyTorch."""

from __future__ import annotations

import pytest
from on_backends import DEVICE
from on_triton import assert_the_same

torch = pytest.importorskip("torch")

# Maps of few leaves, of leaves that fill the highest level, and with leaves so wide that they have many walks.
PROGRAM = """
import sys
import numpy as np, torch
torch.set_default_device(sys.argv[1])
from drsne.backends.torch import cells, tree
rng, real = np.random.default_rng(1), torch.float32 if sys.argv[2] == "single" else torch.float64
cells.TOP, cells._SUMMED_TOGETHER, cells._VISITED, cells._VISITORS, cells.LEAVES = 2, 2, 8, 3, 4
cells._WIDE, cells.WIDE_WALK = 1.2, 1.5
walks, wide = [], 0
for n, d, far in ((1, 2, 0), (33, 1, 3), (64, 2, 9), (260, 2, 500), (200, 2, 0)):
    places = rng.normal(size=(n, d))
    places[: n // 9] *= 1 + far
    Y, scales = torch.tensor(places), torch.tensor(np.exp(0.5 * rng.normal(size=n)))
    cells.compiled = lambda values: False
    at = cells.structure(cells.raised(Y, scales))
    wide += len(at.runs.wide)
    found = []
    for compiled in (False, True):
        cells.compiled = lambda values: compiled
        seen = tree.summed_cells(Y, scales, at, real)
        lists = cells.lists(seen, 0.2, 0.15)
        found.append([[sorted(each.cells[a:b].tolist()) for a, b in zip(each.start, each.start[1:])] for each in lists])
        plain, program = (cells.Pieces.of(lists[1], compiled=each) for each in (False, True))
        pieces = int(plain.of_leaf[-1])
        assert plain.of_leaf.tolist() == program.of_leaf.tolist()
        for a, b in zip(plain[:3], program[:3]):
            assert a.tolist() == b[:pieces].tolist()
            assert not b[pieces:].any()
    assert found[0] == found[1]
    filled = at.runs.own > 0
    many = filled & (seen.sizes[0] > cells.WIDE_WALK * seen.leaves)
    assert seen.n_walks == int(filled.sum()) + (at.levels[-1] - 1) * int(many.sum())
    walks.append((seen.n_walks, int(filled.sum())))
    # A scale that is not a number is in all summaries above its leaf, so its leaf is near to all others.
    wrong = scales.clone()
    wrong[n // 2] = torch.nan
    lists = cells.lists(tree.summed_cells(Y, wrong, at, real), 0.2, 0.15)
    filled = torch.nonzero(filled)[:, 0].tolist()
    leaf = [each for each in filled if wrong[at.order[at.runs.first[each] :][: at.runs.own[each]]].isnan().any()]
    near = [set(lists[1].cells[a:b].tolist()) for a, b in zip(lists[1].start, lists[1].start[1:])]
    assert all(set(leaf) <= near[each] for each in filled)
    assert set(filled) <= near[leaf[0]]
assert wide and any(a > b for a, b in walks)
print("the same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["single", "double"])
def test_triton_programs_do_what_plain_pytorch_does(precision):
    assert_the_same(PROGRAM, DEVICE, precision)
