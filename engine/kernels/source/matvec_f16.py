"""y = W x for float16 weights, read as `interleaved` says."""

import numpy as np

from .interleaved import clear_rows, store_rows


def widen(column, bits):
    #omp simd
    for row in range(64):
        half = np.int32(column[row])
        bits[row] = np.int32(np.uint32(half & np.int32(0x8000)) << np.uint32(16)) | ((half & np.int32(0x7FFF)) << np.int32(13))


def add_column(floats, factor, total):
    #omp simd
    for row in range(64):
        total[row] += floats[row] * factor


def add_group(data, x, bits, floats, total, n_cols):
    clear_rows(total)
    to_half = np.float32(2.0**112)
    for col in range(n_cols):
        widen(data[col * 64:], bits)
        add_column(floats, x[col] * to_half, total)


# pythran export matvec(uint16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, bits, scratch, threads):
    """data: uint16[groups, cols * 64]; x: float32[n, cols]; y: float32[n, rows], overwritten.

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
