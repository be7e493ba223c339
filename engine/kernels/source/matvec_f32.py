"""y = W x for float32 weights."""

import numpy as np

from .interleaved import store_rows


def group(data, x, total, n_cols):
    for row in range(64):
        total[row] = np.float32(0)
    n_blocks = n_cols // 16
    for block in range(n_blocks):
        for row in range(64):
            even = np.float32(0)
            odd = np.float32(0)
            for k in range(8):
                even += data[(block * 16 + 2 * k) * 64 + row] * x[block * 16 + 2 * k]
                odd += data[(block * 16 + 2 * k + 1) * 64 + row] * x[block * 16 + 2 * k + 1]
            total[row] += even + odd
    for col in range(n_blocks * 16, n_cols):
        for row in range(64):
            total[row] += data[col * 64 + row] * x[col]


# pythran export matvec(float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int)
def matvec(data, x, y, threads):
    """data: float32[groups, cols * 64]; x: float32[n, cols]; y: float32[n, rows], overwritten."""
    n = x.shape[0]
    n_groups = data.shape[0]
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        total = np.empty(64, np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(n):
                group(data[g], x[token], total, x.shape[1])
                store_rows(total, y[token], g * 64)
