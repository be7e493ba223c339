"""y = W x for many tokens and F32; the format is told in matvec_f32.py."""

import numpy as np

from .panel import clear, multiply_panel, pack_tile, store_partial


def decode(data, first, n_cols, panel):
    for i in range(n_cols * 64):
        panel[i] = data[first * 64 + i]


# pythran export matmul(float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int, int)
def matmul(data, x, y, packed, panels, partials, tile, threads):
    """data: float32[groups, cols * 64]; x: float32[n, cols]; y: float32[n, rows], overwritten.

    A panel of 64 rows and 256 columns is decoded once and used by every token.  Scratch: packed
    float32[tiles, cols * tile], panels float32[threads, 256 * 64], partials float32[threads, tiles * tile * 64].
    """
    n_cols = x.shape[1]
    n_groups = data.shape[0]
    #omp parallel for schedule(static) num_threads(threads)
    for index in range(packed.shape[0]):
        pack_tile(x, index * tile, tile, packed[index])
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            clear(partials[part])
            for first in range(0, n_cols, 256):
                length = min(256, n_cols - first)
                decode(data[g], first, length, panels[part])
                multiply_panel(panels[part], packed, first, length, partials[part], tile)
            store_partial(partials[part], y, g * 64)
