"""Steps of the optimisers as Triton programs. The same in plain PyTorch is in ``drsne.backends.torch.steps``.

Numbers are annotated with their type, because Triton would pass them in single precision.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr


@triton.jit(do_not_specialize=["n", "rate", "momentum", "min_gain"])
def momentum_step(
    gradient,
    units,
    step,
    gains,
    rate: tl.float64,
    momentum: tl.float64,
    min_gain: tl.float64,
    n,
    D: constexpr,
    UNITS: constexpr,
    GAINS: constexpr,
    FROM_REST: constexpr,
    BLOCK: constexpr,
):
    """Update the last step and the gains of BLOCK of the n coordinates of a map with D dimensions."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < n
    g = tl.load(gradient + at, mask=ok, other=0.0)
    last = tl.load(step + at, mask=ok, other=0.0)
    if UNITS:
        g = tl.load(units + at // D, mask=ok, other=0.0) * g
    if GAINS:
        gain = tl.load(gains + at, mask=ok, other=1.0)
        same_sign = ((last > 0.0) == (g > 0.0)) & ((last < 0.0) == (g < 0.0))
        uphill = same_sign if FROM_REST else last * g >= 0.0
        gain = tl.where(uphill, gain * 0.8, gain + 0.2)
        gain = tl.where(gain < min_gain, min_gain, gain)
        tl.store(gains + at, gain, mask=ok)
        g = gain * g
    tl.store(step + at, momentum * last - rate * g, mask=ok)


@triton.jit(do_not_specialize=["n", "one", "two", "eps", "per_root", "factor"])
def adam_step(
    gradient,
    units,
    mean,
    square,
    out,
    one: tl.float64,
    two: tl.float64,
    eps: tl.float64,
    per_root: tl.float64,
    factor: tl.float64,
    n,
    D: constexpr,
    UNITS: constexpr,
    BLOCK: constexpr,
):
    """Update the means of BLOCK of the n coordinates of a gradient, and write their step.

    ``per_root`` and ``factor`` are factors on the root mean square and on the step.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < n
    g = tl.load(gradient + at, mask=ok, other=0.0)
    if UNITS:
        g = tl.load(units + at // D, mask=ok, other=0.0) * g
    first = one * tl.load(mean + at, mask=ok, other=0.0) + (1.0 - one) * g
    second = two * tl.load(square + at, mask=ok, other=0.0) + (1.0 - two) * (g * g)
    tl.store(mean + at, first, mask=ok)
    tl.store(square + at, second, mask=ok)
    tl.store(out + at, factor * (first / (tl.sqrt(second) * per_root + eps)), mask=ok)


@triton.jit(do_not_specialize=["n", "n_blocks", "longest"])
def advance(
    places,
    step,
    units,
    longest: tl.float64,
    out,
    sums,
    n,
    n_blocks,
    D: constexpr,
    UNITS: constexpr,
    LIMITED: constexpr,
    ROWS: constexpr,
):
    """Write the places of ROWS points after a step, and the sums of their coordinates, (D, n_blocks)."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = i < n
    factor = tl.full([ROWS], 1.0, tl.float64)
    if LIMITED:
        square = tl.zeros([ROWS], tl.float64)
        for c in tl.static_range(D):
            s = tl.load(step + i * D + c, mask=ok, other=0.0)
            square += s * s
        length = tl.sqrt(square) if D > 1 else tl.abs(tl.load(step + i, mask=ok, other=0.0))
        factor = longest / tl.where(length > longest, length, longest)
    if UNITS:
        factor *= tl.load(units + i, mask=ok, other=0.0)
    for c in tl.static_range(D):
        s = tl.load(step + i * D + c, mask=ok, other=0.0)
        place = tl.load(places + i * D + c, mask=ok, other=0.0) + s * factor
        tl.store(out + i * D + c, place, mask=ok)
        tl.store(sums + c * n_blocks + tl.program_id(0), tl.sum(place, axis=0))


@triton.jit(do_not_specialize=["n", "n_points"])
def centre(out, total, n, n_points, D: constexpr, BLOCK: constexpr):
    """Subtract the mean of a map from BLOCK of its n coordinates; ``total`` has the sum of each column."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < n
    mean = tl.load(total + at % D, mask=ok, other=0.0) / n_points
    tl.store(out + at, tl.load(out + at, mask=ok, other=0.0) - mean, mask=ok)
