"""What a bound is made of, in compiled code: dual vectors on the dyadic grid and packed, g down, scores up.

The grid and the packing are the only ones (`mipfs.svm.dyadic` and `mipfs.proof.duals` call them); g and the scores
are those of `mipfs.proof.cuts` and `mipfs.atoms.features`. The bound itself is `mipfs.kernels.bound`, compiled here.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from mipfs.compiled import compiled
from mipfs.kernels import bound
from mipfs.kernels.bound import U
from mipfs.kernels.columns import dot_columns
from mipfs.kernels.kinds import FINEST
from mipfs.kernels.loss import dual

# Compiled code calls it, and Python calls it as it stands.
rounded_down = register_jitable(bound.rounded_down)
gains = register_jitable(bound.gains)
traded = register_jitable(bound.trade_gains)
earned = compiled(nogil=True)(bound.earned)


@compiled(nogil=True)
def to_grid(alpha, top, bits, whole):  # type: ignore[no-untyped-def]
    """Round α into its box [0, top] on a grid 2^−q, k (n,) in `whole`; returns q. Its largest entry has `bits` bits.

    top : (n,), or (0,) where the box is open above, so that nothing is held for it
    """
    n = alpha.size
    has_top = top.size > 0
    size = 0.0
    for i in range(n):
        size = max(size, min(alpha[i], top[i]) if has_top else alpha[i])
    # The largest q at which the largest entry, times 2^q, is at most 2^bits.
    q = min(np.int64(FINEST), bits - np.int64(math.ceil(math.log2(size if size > 0.0 else 1.0))))
    unit = 2.0**q
    for i in range(n):
        value = np.rint(alpha[i] * unit)
        if not value > 0.0:
            value = 0.0
        whole[i] = min(value, np.floor(top[i] * unit)) if has_top else value
    return q


@compiled(nogil=True)
def balance_classes(whole, top, q, y):  # type: ignore[no-untyped-def]
    """Remove the surplus of one class, so that Σ y_i k_i = 0 exactly."""
    surplus = 0
    for i in range(whole.size):
        surplus += whole[i] if y[i] > 0.0 else -whole[i]
    remove_surplus(whole, top, q, y, 1.0 if surplus > 0 else -1.0, abs(surplus))


@compiled(nogil=True)
def remove_surplus(whole, top, q, y, sign, surplus):  # type: ignore[no-untyped-def]
    """Take a surplus off the class of a sign: in proportion, the rest from entries inside the box first."""
    if surplus <= 0:
        return
    n = whole.size
    held = 0.0
    for i in range(n):
        if y[i] * sign > 0.0:
            held += whole[i]
    share = surplus / held
    if share > 1e-6:
        for i in range(n):
            if y[i] * sign > 0.0:
                step = min(whole[i], surplus, np.int64(math.floor(whole[i] * share)))
                whole[i] -= step
                surplus -= step
    unit = 2.0**q
    # An entry at the top of its box costs a certificate one bit, any other some bytes: it is spared at first.
    for sweep in range(2):
        for i in range(n):
            if surplus == 0:
                return
            if y[i] * sign > 0.0 and whole[i] > 0:
                if sweep == 0 and top.size > 0 and whole[i] >= np.floor(top[i] * unit):
                    continue
                step = min(surplus, whole[i])
                whole[i] -= step
                surplus -= step


@compiled(nogil=True)
def value_below(alpha, c, loss):  # type: ignore[no-untyped-def]
    """g(α) of a loss (`LossSteps`), less the rounding error of its sum."""
    sums = np.empty(2)
    dual(loss.dual, alpha, c, sums)
    return rounded_down(sums[0], sums[1], alpha.size)


@compiled(nogil=True)
def scores_above(X, center, norms, columns, v, s):  # type: ignore[no-untyped-def]
    """s_j = ω_j² rounded up for the chosen columns, s (q,)."""
    n = v.size
    total = 0.0
    absolute = 0.0
    square = 0.0
    for i in range(n):
        total += v[i]
        absolute += abs(v[i])
        square += v[i] * v[i]
    dot_columns(X, columns, v, s)
    gamma = (n + 4) * U
    norm = math.sqrt(square)
    relative = 18.0 * U
    for t in range(columns.size):
        j = columns[t]
        omega = s[t] - center[j] * total
        # δ_j: twice γ_n‖x_j‖‖v‖ + γ_n|z_j|‖v‖₁ (Cauchy and Schwarz).
        radius = 2.0 * gamma * (norms[j] * norm + abs(center[j]) * absolute)
        score = omega * omega
        s[t] = score + (2.0 * math.sqrt(score) * radius + radius * radius) * (1.0 + relative) + relative * score


@compiled(nogil=True)
def pack_dual(whole, top, q, weighted, out, at):  # type: ignore[no-untyped-def]
    """Write a dual vector as `DualStore` keeps it from out[at] on; returns (end, level, width).

    `weighted`: the tops differ from sample to sample, and an entry at its own top is not written out.
    """
    n = whole.size
    rows = np.empty(n, np.int64)
    unit = 2.0**q
    level = np.int64(-1)
    count = 0
    if not weighted:
        level = np.int64(0)
        for i in range(n):
            level = max(level, whole[i])
    # A bit for every sample, 1 where the entry is not zero; `rows` are those entries.
    for low in range(0, n, 8):
        byte = 0
        for i in range(low, low + 8):
            byte *= 2
            if i < n:
                byte += whole[i] != 0
                rows[count] = i
                count += whole[i] != 0
        out[at + low // 8] = byte
    end = at + (n + 7) // 8
    # A bit for every such entry, 1 where it is at its limit (its own top, or the largest entry); `rows` are the others.
    most = np.int64(0)
    others = 0
    for low in range(0, count, 8):
        byte = 0
        for r in range(low, low + 8):
            byte *= 2
            if r < count:
                i = rows[r]
                limit = np.int64(min(np.floor(top[i] * unit), 2.0**53)) if weighted else level
                byte += whole[i] == limit
                rows[others] = i
                others += whole[i] != limit
                most = max(most, whole[i] if whole[i] != limit else np.int64(0))
        out[end] = byte
        end += 1
    width = 0
    while most >> (8 * width) > 0:
        width += 1
    for i in rows[:others]:
        for b in range(width):
            out[end] = np.uint8((whole[i] >> (8 * b)) & 255)
            end += 1
    return end, level, width


@compiled(nogil=True)
def unpack_dual(data, level, width, ends, out):  # type: ignore[no-untyped-def]
    """Read what `pack_dual` wrote, k (n,) to `out`; ends (n,) k of an entry at its top, or (0,) where that is the
    level.

    Returns whether `data` holds all of it: nothing beyond is read.
    """
    n = out.size
    count = 0
    if data.size < (n + 7) // 8:
        return False
    for i in range(n):
        out[i] = (data[i // 8] >> (7 - i % 8)) & 1
        count += out[i]
    place = 8 * ((n + 7) // 8)
    end = place // 8 + (count + 7) // 8
    if data.size < end:
        return False
    for i in range(n):
        if out[i] == 0:
            continue
        if (data[place // 8] >> (7 - place % 8)) & 1:
            out[i] = ends[i] if ends.size > 0 else level
        else:
            value = np.int64(0)
            if data.size < end + width:
                return False
            for b in range(width):
                value |= np.int64(data[end]) << (8 * b)
                end += 1
            out[i] = value
        place += 1
    return True
