"""Products of a panel of weights with a tile of tokens, both in 16-bit fixed point (fixed.py tells why that is safe).

Accumulators are spelt out as in `panel.py`, and for the same reasons.  Twice 12 or 6 of them fit the 32 or 16 vector
registers.
"""

import numpy as np

from .fixed import product


def multiply_12(even, odd, scales, offsets, x, x_scales, x_sums, even_totals, odd_totals, ties):
    """totals[token * 32 + lane] += scales[lane] * x_scales[token] * (sum of w[k * 32 + lane] * x[k * 12 + token] / 2**15 over
    32 k) + offsets[lane] * x_sums[token], for 12 tokens.  w and totals: once of the even and once of the odd rows, whose
    scales and offsets follow those of the even ones.  ties: what sums begin with."""
    #omp simd
    for lane in range(32):
        a0 = ties
        b0 = ties
        a1 = ties
        b1 = ties
        a2 = ties
        b2 = ties
        a3 = ties
        b3 = ties
        a4 = ties
        b4 = ties
        a5 = ties
        b5 = ties
        a6 = ties
        b6 = ties
        a7 = ties
        b7 = ties
        a8 = ties
        b8 = ties
        a9 = ties
        b9 = ties
        a10 = ties
        b10 = ties
        a11 = ties
        b11 = ties
        for k in range(32):
            u = even[k * 32 + lane]
            v = odd[k * 32 + lane]
            a0 = np.int16(a0 + product(u, x[k * 12 + 0]))
            b0 = np.int16(b0 + product(v, x[k * 12 + 0]))
            a1 = np.int16(a1 + product(u, x[k * 12 + 1]))
            b1 = np.int16(b1 + product(v, x[k * 12 + 1]))
            a2 = np.int16(a2 + product(u, x[k * 12 + 2]))
            b2 = np.int16(b2 + product(v, x[k * 12 + 2]))
            a3 = np.int16(a3 + product(u, x[k * 12 + 3]))
            b3 = np.int16(b3 + product(v, x[k * 12 + 3]))
            a4 = np.int16(a4 + product(u, x[k * 12 + 4]))
            b4 = np.int16(b4 + product(v, x[k * 12 + 4]))
            a5 = np.int16(a5 + product(u, x[k * 12 + 5]))
            b5 = np.int16(b5 + product(v, x[k * 12 + 5]))
            a6 = np.int16(a6 + product(u, x[k * 12 + 6]))
            b6 = np.int16(b6 + product(v, x[k * 12 + 6]))
            a7 = np.int16(a7 + product(u, x[k * 12 + 7]))
            b7 = np.int16(b7 + product(v, x[k * 12 + 7]))
            a8 = np.int16(a8 + product(u, x[k * 12 + 8]))
            b8 = np.int16(b8 + product(v, x[k * 12 + 8]))
            a9 = np.int16(a9 + product(u, x[k * 12 + 9]))
            b9 = np.int16(b9 + product(v, x[k * 12 + 9]))
            a10 = np.int16(a10 + product(u, x[k * 12 + 10]))
            b10 = np.int16(b10 + product(v, x[k * 12 + 10]))
            a11 = np.int16(a11 + product(u, x[k * 12 + 11]))
            b11 = np.int16(b11 + product(v, x[k * 12 + 11]))
        p = scales[lane]
        q = scales[32 + lane]
        r = offsets[lane]
        s = offsets[32 + lane]
        even_totals[0 + lane] += np.float32(a0) * (p * x_scales[0]) + r * x_sums[0]
        odd_totals[0 + lane] += np.float32(b0) * (q * x_scales[0]) + s * x_sums[0]
        even_totals[32 + lane] += np.float32(a1) * (p * x_scales[1]) + r * x_sums[1]
        odd_totals[32 + lane] += np.float32(b1) * (q * x_scales[1]) + s * x_sums[1]
        even_totals[64 + lane] += np.float32(a2) * (p * x_scales[2]) + r * x_sums[2]
        odd_totals[64 + lane] += np.float32(b2) * (q * x_scales[2]) + s * x_sums[2]
        even_totals[96 + lane] += np.float32(a3) * (p * x_scales[3]) + r * x_sums[3]
        odd_totals[96 + lane] += np.float32(b3) * (q * x_scales[3]) + s * x_sums[3]
        even_totals[128 + lane] += np.float32(a4) * (p * x_scales[4]) + r * x_sums[4]
        odd_totals[128 + lane] += np.float32(b4) * (q * x_scales[4]) + s * x_sums[4]
        even_totals[160 + lane] += np.float32(a5) * (p * x_scales[5]) + r * x_sums[5]
        odd_totals[160 + lane] += np.float32(b5) * (q * x_scales[5]) + s * x_sums[5]
        even_totals[192 + lane] += np.float32(a6) * (p * x_scales[6]) + r * x_sums[6]
        odd_totals[192 + lane] += np.float32(b6) * (q * x_scales[6]) + s * x_sums[6]
        even_totals[224 + lane] += np.float32(a7) * (p * x_scales[7]) + r * x_sums[7]
        odd_totals[224 + lane] += np.float32(b7) * (q * x_scales[7]) + s * x_sums[7]
        even_totals[256 + lane] += np.float32(a8) * (p * x_scales[8]) + r * x_sums[8]
        odd_totals[256 + lane] += np.float32(b8) * (q * x_scales[8]) + s * x_sums[8]
        even_totals[288 + lane] += np.float32(a9) * (p * x_scales[9]) + r * x_sums[9]
        odd_totals[288 + lane] += np.float32(b9) * (q * x_scales[9]) + s * x_sums[9]
        even_totals[320 + lane] += np.float32(a10) * (p * x_scales[10]) + r * x_sums[10]
        odd_totals[320 + lane] += np.float32(b10) * (q * x_scales[10]) + s * x_sums[10]
        even_totals[352 + lane] += np.float32(a11) * (p * x_scales[11]) + r * x_sums[11]
        odd_totals[352 + lane] += np.float32(b11) * (q * x_scales[11]) + s * x_sums[11]


def multiply_6(even, odd, scales, offsets, x, x_scales, x_sums, even_totals, odd_totals, ties):
    """The same for 6 tokens."""
    #omp simd
    for lane in range(32):
        a0 = ties
        b0 = ties
        a1 = ties
        b1 = ties
        a2 = ties
        b2 = ties
        a3 = ties
        b3 = ties
        a4 = ties
        b4 = ties
        a5 = ties
        b5 = ties
        for k in range(32):
            u = even[k * 32 + lane]
            v = odd[k * 32 + lane]
            a0 = np.int16(a0 + product(u, x[k * 6 + 0]))
            b0 = np.int16(b0 + product(v, x[k * 6 + 0]))
            a1 = np.int16(a1 + product(u, x[k * 6 + 1]))
            b1 = np.int16(b1 + product(v, x[k * 6 + 1]))
            a2 = np.int16(a2 + product(u, x[k * 6 + 2]))
            b2 = np.int16(b2 + product(v, x[k * 6 + 2]))
            a3 = np.int16(a3 + product(u, x[k * 6 + 3]))
            b3 = np.int16(b3 + product(v, x[k * 6 + 3]))
            a4 = np.int16(a4 + product(u, x[k * 6 + 4]))
            b4 = np.int16(b4 + product(v, x[k * 6 + 4]))
            a5 = np.int16(a5 + product(u, x[k * 6 + 5]))
            b5 = np.int16(b5 + product(v, x[k * 6 + 5]))
        p = scales[lane]
        q = scales[32 + lane]
        r = offsets[lane]
        s = offsets[32 + lane]
        even_totals[0 + lane] += np.float32(a0) * (p * x_scales[0]) + r * x_sums[0]
        odd_totals[0 + lane] += np.float32(b0) * (q * x_scales[0]) + s * x_sums[0]
        even_totals[32 + lane] += np.float32(a1) * (p * x_scales[1]) + r * x_sums[1]
        odd_totals[32 + lane] += np.float32(b1) * (q * x_scales[1]) + s * x_sums[1]
        even_totals[64 + lane] += np.float32(a2) * (p * x_scales[2]) + r * x_sums[2]
        odd_totals[64 + lane] += np.float32(b2) * (q * x_scales[2]) + s * x_sums[2]
        even_totals[96 + lane] += np.float32(a3) * (p * x_scales[3]) + r * x_sums[3]
        odd_totals[96 + lane] += np.float32(b3) * (q * x_scales[3]) + s * x_sums[3]
        even_totals[128 + lane] += np.float32(a4) * (p * x_scales[4]) + r * x_sums[4]
        odd_totals[128 + lane] += np.float32(b4) * (q * x_scales[4]) + s * x_sums[4]
        even_totals[160 + lane] += np.float32(a5) * (p * x_scales[5]) + r * x_sums[5]
        odd_totals[160 + lane] += np.float32(b5) * (q * x_scales[5]) + s * x_sums[5]
