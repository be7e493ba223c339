"""Products of a panel (k slow, 64 rows fast) with a tile of tokens, held in registers.

A tile is 14 tokens where there are 32 vector registers (AVX-512, arm64) and 6 where there are 16: two vectors of
rows times the tile, two vectors of weights and one broadcast fill the registers.  The accumulators are spelt out,
because an array of them would be kept in memory.
"""

import numpy as np


def multiply_14(w, w_start, w_stride, x, x_start, y, y_start, y_stride, length):
    """y[token, lane] += sum over k of w[k, lane] * x[k, token] for 32 lanes and 14 tokens."""
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
        for k in range(length):
            u = w[w_start + k * w_stride + lane]
            v = w[w_start + k * w_stride + 16 + lane]
            a0 += u * x[x_start + k * 14 + 0]
            b0 += v * x[x_start + k * 14 + 0]
            a1 += u * x[x_start + k * 14 + 1]
            b1 += v * x[x_start + k * 14 + 1]
            a2 += u * x[x_start + k * 14 + 2]
            b2 += v * x[x_start + k * 14 + 2]
            a3 += u * x[x_start + k * 14 + 3]
            b3 += v * x[x_start + k * 14 + 3]
            a4 += u * x[x_start + k * 14 + 4]
            b4 += v * x[x_start + k * 14 + 4]
            a5 += u * x[x_start + k * 14 + 5]
            b5 += v * x[x_start + k * 14 + 5]
            a6 += u * x[x_start + k * 14 + 6]
            b6 += v * x[x_start + k * 14 + 6]
            a7 += u * x[x_start + k * 14 + 7]
            b7 += v * x[x_start + k * 14 + 7]
            a8 += u * x[x_start + k * 14 + 8]
            b8 += v * x[x_start + k * 14 + 8]
            a9 += u * x[x_start + k * 14 + 9]
            b9 += v * x[x_start + k * 14 + 9]
            a10 += u * x[x_start + k * 14 + 10]
            b10 += v * x[x_start + k * 14 + 10]
            a11 += u * x[x_start + k * 14 + 11]
            b11 += v * x[x_start + k * 14 + 11]
            a12 += u * x[x_start + k * 14 + 12]
            b12 += v * x[x_start + k * 14 + 12]
            a13 += u * x[x_start + k * 14 + 13]
            b13 += v * x[x_start + k * 14 + 13]
        y[y_start + 0 * y_stride + lane] += a0
        y[y_start + 0 * y_stride + 16 + lane] += b0
        y[y_start + 1 * y_stride + lane] += a1
        y[y_start + 1 * y_stride + 16 + lane] += b1
        y[y_start + 2 * y_stride + lane] += a2
        y[y_start + 2 * y_stride + 16 + lane] += b2
        y[y_start + 3 * y_stride + lane] += a3
        y[y_start + 3 * y_stride + 16 + lane] += b3
        y[y_start + 4 * y_stride + lane] += a4
        y[y_start + 4 * y_stride + 16 + lane] += b4
        y[y_start + 5 * y_stride + lane] += a5
        y[y_start + 5 * y_stride + 16 + lane] += b5
        y[y_start + 6 * y_stride + lane] += a6
        y[y_start + 6 * y_stride + 16 + lane] += b6
        y[y_start + 7 * y_stride + lane] += a7
        y[y_start + 7 * y_stride + 16 + lane] += b7
        y[y_start + 8 * y_stride + lane] += a8
        y[y_start + 8 * y_stride + 16 + lane] += b8
        y[y_start + 9 * y_stride + lane] += a9
        y[y_start + 9 * y_stride + 16 + lane] += b9
        y[y_start + 10 * y_stride + lane] += a10
        y[y_start + 10 * y_stride + 16 + lane] += b10
        y[y_start + 11 * y_stride + lane] += a11
        y[y_start + 11 * y_stride + 16 + lane] += b11
        y[y_start + 12 * y_stride + lane] += a12
        y[y_start + 12 * y_stride + 16 + lane] += b12
        y[y_start + 13 * y_stride + lane] += a13
        y[y_start + 13 * y_stride + 16 + lane] += b13


def multiply_6(w, w_start, w_stride, x, x_start, y, y_start, y_stride, length):
    """y[token, lane] += sum over k of w[k, lane] * x[k, token] for 32 lanes and 6 tokens."""
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
        for k in range(length):
            u = w[w_start + k * w_stride + lane]
            v = w[w_start + k * w_stride + 16 + lane]
            a0 += u * x[x_start + k * 6 + 0]
            b0 += v * x[x_start + k * 6 + 0]
            a1 += u * x[x_start + k * 6 + 1]
            b1 += v * x[x_start + k * 6 + 1]
            a2 += u * x[x_start + k * 6 + 2]
            b2 += v * x[x_start + k * 6 + 2]
            a3 += u * x[x_start + k * 6 + 3]
            b3 += v * x[x_start + k * 6 + 3]
            a4 += u * x[x_start + k * 6 + 4]
            b4 += v * x[x_start + k * 6 + 4]
            a5 += u * x[x_start + k * 6 + 5]
            b5 += v * x[x_start + k * 6 + 5]
        y[y_start + 0 * y_stride + lane] += a0
        y[y_start + 0 * y_stride + 16 + lane] += b0
        y[y_start + 1 * y_stride + lane] += a1
        y[y_start + 1 * y_stride + 16 + lane] += b1
        y[y_start + 2 * y_stride + lane] += a2
        y[y_start + 2 * y_stride + 16 + lane] += b2
        y[y_start + 3 * y_stride + lane] += a3
        y[y_start + 3 * y_stride + 16 + lane] += b3
        y[y_start + 4 * y_stride + lane] += a4
        y[y_start + 4 * y_stride + 16 + lane] += b4
        y[y_start + 5 * y_stride + lane] += a5
        y[y_start + 5 * y_stride + 16 + lane] += b5


def multiply_tile(w, w_start, w_stride, x, x_start, y, y_start, y_stride, length, tile):
    if tile == 14:
        multiply_14(w, w_start, w_stride, x, x_start, y, y_start, y_stride, length)
    else:
        multiply_6(w, w_start, w_stride, x, x_start, y, y_start, y_stride, length)


def pack_tile(x, first, tile, packed):
    """Tokens first to first + tile of x[n, cols] as packed[col, token]; zeros after the last token."""
    n = x.shape[0]
    for token in range(tile):
        for col in range(x.shape[1]):
            packed[col * tile + token] = x[first + token, col] if first + token < n else np.float32(0)


def clear(values):
    for i in range(values.shape[0]):
        values[i] = np.float32(0)


def multiply_panel(panel, packed, first_col, length, partial, tile):
    """Adds the panel's columns first_col to first_col + length to the sums of every token."""
    for index in range(packed.shape[0]):
        start = index * tile * 64
        multiply_tile(panel, 0, 64, packed[index], first_col * tile, partial, start, 64, length, tile)
        multiply_tile(panel, 32, 64, packed[index], first_col * tile, partial, start + 32, 64, length, tile)


def store_partial(partial, y, first_row):
    """Sums [token, 64] to y[token, first_row:], leaving out padding tokens and rows."""
    for token in range(y.shape[0]):
        for row in range(min(64, y.shape[1] - first_row)):
            y[token, first_row + row] = partial[token * 64 + row]
