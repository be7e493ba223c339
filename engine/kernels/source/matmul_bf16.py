"""y = W x for many tokens and BF16; the format is told in matvec_bf16.py."""

import numpy as np

from .panel import clear, multiply_panel, pack_tile, store_partial


def decode(data, first, n_cols, panel, bits, floats):
    for start in range(0, n_cols * 64, 1024):
        count = min(1024, n_cols * 64 - start)
        for i in range(count):
            half = np.int32(data[first * 64 + start + i])
            bits[i] = half << np.int32(16)
        for i in range(count):
            panel[start + i] = floats[i]


# pythran export matmul(uint16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int, int)
def matmul(data, x, y, packed, panels, partials, tile, threads):
    """data: uint16[groups, cols * 64]; x: float32[n, cols]; y: float32[n, rows], overwritten.

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
        bits = np.empty(1024, np.int32)
        floats = bits.view(np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            clear(partials[part])
            for first in range(0, n_cols, 256):
                length = min(256, n_cols - first)
                decode(data[g], first, length, panels[part], bits, floats)
                multiply_panel(panels[part], packed, first, length, partials[part], tile)
            store_partial(partials[part], y, g * 64)
