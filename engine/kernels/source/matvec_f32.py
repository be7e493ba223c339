"""y = W x for float32 weights."""

import numpy as np

from .interleaved import clear_rows, store_rows


def add_column(column, x, bits, floats, total):
    #omp simd
    for row in range(64):
        total[row] += column[row] * x[0]


def add_group(data, x, bits, floats, total, n_cols):
    clear_rows(total)
    for col in range(n_cols):
        add_column(data[col * 64:], x[col:], bits, floats, total)


# pythran export matvec(float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, bits, scratch, threads):
    """data: float32[groups, cols * 64]; x: float32[n, cols]; y: float32[n, rows], overwritten.

    Scratch: bits int32[threads, 64], scratch float32[threads, 3 or more, 1024 or more].
    """
    n_groups = data.shape[0]
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], bits[part], floats[part], scratch[part, 0], x.shape[1])
                store_rows(scratch[part, 0], y[token], g * 64)
