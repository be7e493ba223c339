"""Adds the results of experts to those of their tokens."""

import numpy as np


def add_row(row, weight, out, first, stop):
    #omp simd
    for i in range(first, stop):
        out[i] += weight * row[i]


# pythran export add_weighted_rows(float32[:,:] order(C), int32[:] order(C), float32[:] order(C), float32[:,:] order(C), int)
def add_weighted_rows(rows, tokens, weights, out, threads):
    """out[tokens[i]] += weights[i] * rows[i].  rows: float32[m, width]; tokens: int32[m], any of them more than once;
    weights: float32[m]; out: float32[n, width].  Each thread has columns of its own, so that none meet.
    """
    m = rows.shape[0]
    width = rows.shape[1]
    n_blocks = (width + 63) // 64
    #omp parallel for schedule(static) num_threads(threads) if(m * width > 16383)
    for part in range(threads):
        first = part * n_blocks // threads * 64
        stop = min(width, (part + 1) * n_blocks // threads * 64)
        for i in range(m):
            # computed, not only named: an element that is handed over is a reference
            weight = weights[i] * np.float32(1)
            add_row(rows[i], weight, out[tokens[i]], first, stop)
