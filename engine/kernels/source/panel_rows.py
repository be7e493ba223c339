"""Products of a panel of 64 x 64 numbers (k slow, 64 lanes fast) with a tile of rows, held in registers.

As in `panel`, but a row keeps its 64 numbers side by side, as queries and softmax weights do, and a lane is a position
or a number of a head.  14 rows where there are 32 vector registers, 6 where there are 16; the smaller tiles are for
writing, when the rows are the few query heads that share a KV head.  What g++ needs to vectorise this is told in
`panel`; the loop over halves must not be a literal one, or it is unrolled.
"""

import numpy as np


def multiply_tile(w, x, y, tile):
    """y[row * 64 + lane] += sum over k of w[k * 64 + lane] * x[row * 64 + k], for tile rows."""
    if tile == 14:
        multiply_14(w, x, y)
    elif tile == 8:
        multiply_8(w, x, y)
    elif tile == 6:
        multiply_6(w, x, y)
    else:
        multiply_4(w, x, y)


def multiply_14(w, x, y):
    for half in range(w.shape[0] // 2048):
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
                u = w[half * 32 + k * 64 + lane]
                v = w[half * 32 + k * 64 + 16 + lane]
                a0 += u * x[k]
                b0 += v * x[k]
                a1 += u * x[64 + k]
                b1 += v * x[64 + k]
                a2 += u * x[128 + k]
                b2 += v * x[128 + k]
                a3 += u * x[192 + k]
                b3 += v * x[192 + k]
                a4 += u * x[256 + k]
                b4 += v * x[256 + k]
                a5 += u * x[320 + k]
                b5 += v * x[320 + k]
                a6 += u * x[384 + k]
                b6 += v * x[384 + k]
                a7 += u * x[448 + k]
                b7 += v * x[448 + k]
                a8 += u * x[512 + k]
                b8 += v * x[512 + k]
                a9 += u * x[576 + k]
                b9 += v * x[576 + k]
                a10 += u * x[640 + k]
                b10 += v * x[640 + k]
                a11 += u * x[704 + k]
                b11 += v * x[704 + k]
                a12 += u * x[768 + k]
                b12 += v * x[768 + k]
                a13 += u * x[832 + k]
                b13 += v * x[832 + k]
            y[half * 32 + 0 + lane] += a0
            y[half * 32 + 16 + lane] += b0
            y[half * 32 + 64 + lane] += a1
            y[half * 32 + 80 + lane] += b1
            y[half * 32 + 128 + lane] += a2
            y[half * 32 + 144 + lane] += b2
            y[half * 32 + 192 + lane] += a3
            y[half * 32 + 208 + lane] += b3
            y[half * 32 + 256 + lane] += a4
            y[half * 32 + 272 + lane] += b4
            y[half * 32 + 320 + lane] += a5
            y[half * 32 + 336 + lane] += b5
            y[half * 32 + 384 + lane] += a6
            y[half * 32 + 400 + lane] += b6
            y[half * 32 + 448 + lane] += a7
            y[half * 32 + 464 + lane] += b7
            y[half * 32 + 512 + lane] += a8
            y[half * 32 + 528 + lane] += b8
            y[half * 32 + 576 + lane] += a9
            y[half * 32 + 592 + lane] += b9
            y[half * 32 + 640 + lane] += a10
            y[half * 32 + 656 + lane] += b10
            y[half * 32 + 704 + lane] += a11
            y[half * 32 + 720 + lane] += b11
            y[half * 32 + 768 + lane] += a12
            y[half * 32 + 784 + lane] += b12
            y[half * 32 + 832 + lane] += a13
            y[half * 32 + 848 + lane] += b13


def multiply_8(w, x, y):
    for half in range(w.shape[0] // 2048):
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
            for k in range(64):
                u = w[half * 32 + k * 64 + lane]
                v = w[half * 32 + k * 64 + 16 + lane]
                a0 += u * x[k]
                b0 += v * x[k]
                a1 += u * x[64 + k]
                b1 += v * x[64 + k]
                a2 += u * x[128 + k]
                b2 += v * x[128 + k]
                a3 += u * x[192 + k]
                b3 += v * x[192 + k]
                a4 += u * x[256 + k]
                b4 += v * x[256 + k]
                a5 += u * x[320 + k]
                b5 += v * x[320 + k]
                a6 += u * x[384 + k]
                b6 += v * x[384 + k]
                a7 += u * x[448 + k]
                b7 += v * x[448 + k]
            y[half * 32 + 0 + lane] += a0
            y[half * 32 + 16 + lane] += b0
            y[half * 32 + 64 + lane] += a1
            y[half * 32 + 80 + lane] += b1
            y[half * 32 + 128 + lane] += a2
            y[half * 32 + 144 + lane] += b2
            y[half * 32 + 192 + lane] += a3
            y[half * 32 + 208 + lane] += b3
            y[half * 32 + 256 + lane] += a4
            y[half * 32 + 272 + lane] += b4
            y[half * 32 + 320 + lane] += a5
            y[half * 32 + 336 + lane] += b5
            y[half * 32 + 384 + lane] += a6
            y[half * 32 + 400 + lane] += b6
            y[half * 32 + 448 + lane] += a7
            y[half * 32 + 464 + lane] += b7


def multiply_6(w, x, y):
    for half in range(w.shape[0] // 2048):
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
                u = w[half * 32 + k * 64 + lane]
                v = w[half * 32 + k * 64 + 16 + lane]
                a0 += u * x[k]
                b0 += v * x[k]
                a1 += u * x[64 + k]
                b1 += v * x[64 + k]
                a2 += u * x[128 + k]
                b2 += v * x[128 + k]
                a3 += u * x[192 + k]
                b3 += v * x[192 + k]
                a4 += u * x[256 + k]
                b4 += v * x[256 + k]
                a5 += u * x[320 + k]
                b5 += v * x[320 + k]
            y[half * 32 + 0 + lane] += a0
            y[half * 32 + 16 + lane] += b0
            y[half * 32 + 64 + lane] += a1
            y[half * 32 + 80 + lane] += b1
            y[half * 32 + 128 + lane] += a2
            y[half * 32 + 144 + lane] += b2
            y[half * 32 + 192 + lane] += a3
            y[half * 32 + 208 + lane] += b3
            y[half * 32 + 256 + lane] += a4
            y[half * 32 + 272 + lane] += b4
            y[half * 32 + 320 + lane] += a5
            y[half * 32 + 336 + lane] += b5


def multiply_4(w, x, y):
    for half in range(w.shape[0] // 2048):
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
            for k in range(64):
                u = w[half * 32 + k * 64 + lane]
                v = w[half * 32 + k * 64 + 16 + lane]
                a0 += u * x[k]
                b0 += v * x[k]
                a1 += u * x[64 + k]
                b1 += v * x[64 + k]
                a2 += u * x[128 + k]
                b2 += v * x[128 + k]
                a3 += u * x[192 + k]
                b3 += v * x[192 + k]
            y[half * 32 + 0 + lane] += a0
            y[half * 32 + 16 + lane] += b0
            y[half * 32 + 64 + lane] += a1
            y[half * 32 + 80 + lane] += b1
            y[half * 32 + 128 + lane] += a2
            y[half * 32 + 144 + lane] += b2
            y[half * 32 + 192 + lane] += a3
            y[half * 32 + 208 + lane] += b3
