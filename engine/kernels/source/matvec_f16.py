"""y = W x for float16 weights, read as `interleaved` says."""

import numpy as np

from .interleaved import store_rows


def decode(data, start, count, bits):
    for i in range(count):
        half = np.int32(data[start + i])
        bits[i] = ((half & np.int32(0x8000)) << np.int32(16)) | ((half & np.int32(0x7FFF)) << np.int32(13))


def group(data, x, total, bits, floats, n_cols):
    to_half = np.float32(2.0**112)
    for row in range(64):
        total[row] = np.float32(0)
    n_blocks = n_cols // 16
    for block in range(n_blocks):
        decode(data, block * 1024, 1024, bits)
        for row in range(64):
            even = np.float32(0)
            odd = np.float32(0)
            for k in range(8):
                even += floats[k * 128 + row] * to_half * x[block * 16 + 2 * k]
                odd += floats[k * 128 + 64 + row] * to_half * x[block * 16 + 2 * k + 1]
            total[row] += even + odd
    for col in range(n_blocks * 16, n_cols):
        decode(data, col * 64, 64, bits)
        for row in range(64):
            total[row] += floats[row] * to_half * x[col]


# pythran export matvec(uint16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int)
def matvec(data, x, y, threads):
    """data: uint16[groups, cols * 64]; x: float32[n, cols]; y: float32[n, rows], overwritten."""
    n = x.shape[0]
    n_groups = data.shape[0]
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        total = np.empty(64, np.float32)
        bits = np.empty(1024, np.int32)
        floats = bits.view(np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(n):
                group(data[g], x[token], total, bits, floats, x.shape[1])
                store_rows(total, y[token], g * 64)
