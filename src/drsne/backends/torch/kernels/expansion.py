"""The field of far nodes, expanded to third order around the centre of a leaf (docs/theory.md, eqs. 52 to 55).

Plain PyTorch calls these formulas with tensors, and Triton compiles them. Coefficients are named by the powers of the
coordinates x and y and the scale a of a point, relative to the centre.
"""

from __future__ import annotations


def coefficients(x, y, a, b, xx, yy, xy, xb, yb, bb, n):
    """Return the coefficients of the field of a node; the last one lacks the factor n / 6.

    The node is at the distance (x, y) from the leaf. The scale of the leaf is a. The node has the scale b, second
    moments and the mass n.
    """
    s, h = x * x + y * y, a * b
    m = 1.0 / (h + s)
    w, r = h * m, s * m
    # Derivatives with respect to the squared distance s and the scales a and b.
    ws = -w * m
    wss = -2.0 * ws * m
    wsss = -3.0 * wss * m
    bm, am = b * m, a * m
    was, wbs = bm * m * (w - r), am * m * (w - r)
    wass, wbss = 2.0 * bm * m * m * (r - 2.0 * w), 2.0 * am * m * m * (r - 2.0 * w)
    wa = bm * r
    waa = -2.0 * bm * wa
    waaa = -3.0 * bm * waa
    waas, wbbs = 2.0 * bm * bm * m * (2.0 * r - w), 2.0 * am * am * m * (2.0 * r - w)
    wbb = -2.0 * am * am * r
    wabs = m * m * (4.0 * r * w - r * r - w * w)
    wabb = 2.0 * am * m * r * (w - 2.0 * r)
    trace = xx + yy
    px, py = xx * x + xy * y, xy * x + yy * y
    q, c = px * x + py * y, xb * x + yb * y
    g = n * ws + wss * trace + 2.0 * wsss * q - 2.0 * wbss * c + 0.5 * wbbs * bb
    second, k = 2.0 * n * wss, 4.0 / 3.0 * n * wsss
    return (
        n * w + ws * trace + 2.0 * wss * q - 2.0 * wbs * c + 0.5 * wbb * bb,  # 1
        2.0 * (g * x + 2.0 * wss * px - wbs * xb),  # x
        2.0 * (g * y + 2.0 * wss * py - wbs * yb),  # y
        n * wa + was * trace + 2.0 * wass * q - 2.0 * wabs * c + 0.5 * wabb * bb,  # a
        n * (ws + 2.0 * wss * x * x),  # xx
        n * 4.0 * wss * x * y,  # xy
        n * (ws + 2.0 * wss * y * y),  # yy
        n * 2.0 * was * x,  # xa
        n * 2.0 * was * y,  # ya
        n * 0.5 * waa,  # aa
        x * (second + k * x * x),  # xxx
        y * (second + 3.0 * k * x * x),  # xxy
        x * (second + 3.0 * k * y * y),  # xyy
        y * (second + k * y * y),  # yyy
        n * (was + 2.0 * wass * x * x),  # xxa
        n * 4.0 * wass * x * y,  # xya
        n * (was + 2.0 * wass * y * y),  # yya
        n * waas * x,  # xaa
        n * waas * y,  # yaa
        waaa,  # aaa, without n / 6
    )


def expanded(x, y, z, field):
    """Return the potential at points around the centre of a leaf, and its derivatives by x and y in three parts each.

    Triton and plain PyTorch add these parts in different orders, so that their last bits stay what they were.
    """
    f, fx, fy, fa, fxx, fxy, fyy, fxa, fya, faa, fxxx, fxxy, fxyy, fyyy, fxxa, fxya, fyya, fxaa, fyaa, faaa = field
    value = (
        f
        + x * (fx + x * (fxx + x * fxxx + y * fxxy + z * fxxa) + z * (fxa + z * fxaa))
        + y * (fy + y * (fyy + y * fyyy + x * fxyy + z * fyya) + x * (fxy + z * fxya) + z * (fya + z * fyaa))
        + z * (fa + z * (faa + z * faaa))
    )
    gx = fx + 2.0 * x * (fxx + y * fxxy + z * fxxa) + 3.0 * x * x * fxxx
    gy = fy + 2.0 * y * (fyy + x * fxyy + z * fyya) + 3.0 * y * y * fyyy
    gx_of_y, gx_of_z = y * (fxy + y * fxyy + z * fxya), z * (fxa + z * fxaa)
    gy_of_x, gy_of_z = x * (fxy + x * fxxy + z * fxya), z * (fya + z * fyaa)
    return value, gx, gx_of_y, gx_of_z, gy, gy_of_x, gy_of_z
