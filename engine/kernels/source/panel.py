"""Products of a panel (k slow, 32 rows fast) with a tile of tokens, held in registers.

A tile is 14 tokens where there are 32 vector registers (AVX-512, arm64) and 6 where there are 16: two vectors of
rows times the tile, two vectors of weights and one broadcast fill the registers.  The accumulators are spelt out,
because an array of them would be kept in memory.

What g++ needs to vectorise this: a literal number of steps (else the test whether there are any stands in the way),
literal strides, and arguments that are parts of arrays by whole indices, not slices.
"""

import numpy as np


def multiply_14(w, x, y):
    """y[token * 32 + lane] += sum over k of w[k * 32 + lane] * x[k * 14 + token]: 32 lanes, 14 tokens, 64 steps."""
    #omp simd
    for lane in range(16):
        a0 = np.float32(0)
        b0 = np.float32(0)
        a1 = np.float32(0)
        b1 = np.float32(0)
        a2 = np.float32(0)
        b2 = np.float32(0)
        a3 = np.float32(0)
        b3 = np.float32(0)
        a4 = np.float32(0)
        b4 = np.float32(0)
        a5 = np.float32(0)
        b5 = np.float32(0)
        a6 = np.float32(0)
        b6 = np.float32(0)
        a7 = np.float32(0)
        b7 = np.float32(0)
        a8 = np.float32(0)
        b8 = np.float32(0)
        a9 = np.float32(0)
        b9 = np.float32(0)
        a10 = np.float32(0)
        b10 = np.float32(0)
        a11 = np.float32(0)
        b11 = np.float32(0)
        a12 = np.float32(0)
        b12 = np.float32(0)
        a13 = np.float32(0)
        b13 = np.float32(0)
        for k in range(64):
            u = w[k * 32 + lane]
            v = w[k * 32 + 16 + lane]
            a0 += u * x[k * 14 + 0]
            b0 += v * x[k * 14 + 0]
            a1 += u * x[k * 14 + 1]
            b1 += v * x[k * 14 + 1]
            a2 += u * x[k * 14 + 2]
            b2 += v * x[k * 14 + 2]
            a3 += u * x[k * 14 + 3]
            b3 += v * x[k * 14 + 3]
            a4 += u * x[k * 14 + 4]
            b4 += v * x[k * 14 + 4]
            a5 += u * x[k * 14 + 5]
            b5 += v * x[k * 14 + 5]
            a6 += u * x[k * 14 + 6]
            b6 += v * x[k * 14 + 6]
            a7 += u * x[k * 14 + 7]
            b7 += v * x[k * 14 + 7]
            a8 += u * x[k * 14 + 8]
            b8 += v * x[k * 14 + 8]
            a9 += u * x[k * 14 + 9]
            b9 += v * x[k * 14 + 9]
            a10 += u * x[k * 14 + 10]
            b10 += v * x[k * 14 + 10]
            a11 += u * x[k * 14 + 11]
            b11 += v * x[k * 14 + 11]
            a12 += u * x[k * 14 + 12]
            b12 += v * x[k * 14 + 12]
            a13 += u * x[k * 14 + 13]
            b13 += v * x[k * 14 + 13]
        y[0 + lane] += a0
        y[16 + lane] += b0
        y[32 + lane] += a1
        y[48 + lane] += b1
        y[64 + lane] += a2
        y[80 + lane] += b2
        y[96 + lane] += a3
        y[112 + lane] += b3
        y[128 + lane] += a4
        y[144 + lane] += b4
        y[160 + lane] += a5
        y[176 + lane] += b5
        y[192 + lane] += a6
        y[208 + lane] += b6
        y[224 + lane] += a7
        y[240 + lane] += b7
        y[256 + lane] += a8
        y[272 + lane] += b8
        y[288 + lane] += a9
        y[304 + lane] += b9
        y[320 + lane] += a10
        y[336 + lane] += b10
        y[352 + lane] += a11
        y[368 + lane] += b11
        y[384 + lane] += a12
        y[400 + lane] += b12
        y[416 + lane] += a13
        y[432 + lane] += b13


def multiply_6(w, x, y):
    """y[token * 32 + lane] += sum over k of w[k * 32 + lane] * x[k * 6 + token]: 32 lanes, 6 tokens, 64 steps."""
    #omp simd
    for lane in range(16):
        a0 = np.float32(0)
        b0 = np.float32(0)
        a1 = np.float32(0)
        b1 = np.float32(0)
        a2 = np.float32(0)
        b2 = np.float32(0)
        a3 = np.float32(0)
        b3 = np.float32(0)
        a4 = np.float32(0)
        b4 = np.float32(0)
        a5 = np.float32(0)
        b5 = np.float32(0)
        for k in range(64):
            u = w[k * 32 + lane]
            v = w[k * 32 + 16 + lane]
            a0 += u * x[k * 6 + 0]
            b0 += v * x[k * 6 + 0]
            a1 += u * x[k * 6 + 1]
            b1 += v * x[k * 6 + 1]
            a2 += u * x[k * 6 + 2]
            b2 += v * x[k * 6 + 2]
            a3 += u * x[k * 6 + 3]
            b3 += v * x[k * 6 + 3]
            a4 += u * x[k * 6 + 4]
            b4 += v * x[k * 6 + 4]
            a5 += u * x[k * 6 + 5]
            b5 += v * x[k * 6 + 5]
        y[0 + lane] += a0
        y[16 + lane] += b0
        y[32 + lane] += a1
        y[48 + lane] += b1
        y[64 + lane] += a2
        y[80 + lane] += b2
        y[96 + lane] += a3
        y[112 + lane] += b3
        y[128 + lane] += a4
        y[144 + lane] += b4
        y[160 + lane] += a5
        y[176 + lane] += b5
