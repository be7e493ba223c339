"""y = W x for many tokens and Q4_1; the format is told in matvec_q4_1.py."""

import numpy as np

from .interleaved import half_bits
from .panel import clear, multiply_panel, pack_tile, store_partial


def decode(data, first_block, n_blocks, panel, d_bits, d, m_bits, m):
    to_half = np.float32(2.0**112)
    for block in range(n_blocks):
        start = (first_block + block) * 20 * 64
        half_bits(data, start, d_bits)
        half_bits(data, start + 128, m_bits)
        for row in range(d.shape[0]):
            d[row] *= to_half
            m[row] *= to_half
        for k in range(block * 32, block * 32 + 16):
            source = start + (4 + k - block * 32) * 64
            for row in range(d.shape[0]):
                q = data[source + row]
                panel[k * 64 + row] = np.float32(q & np.uint8(15)) * d[row] + m[row]
                panel[(k + 16) * 64 + row] = np.float32(q >> np.uint8(4)) * d[row] + m[row]


# pythran export matmul(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int, int)
def matmul(data, x, y, packed, panels, partials, tile, threads):
    """data: uint8[groups, blocks * 20 * 64]; x: float32[n, blocks * 32]; y: float32[n, rows], overwritten.

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
        d_bits = np.empty(64, np.int32)
        m_bits = np.empty(64, np.int32)
        d = d_bits.view(np.float32)
        m = m_bits.view(np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            clear(partials[part])
            for first in range(0, n_cols, 256):
                length = min(256, n_cols - first)
                decode(data[g], first // 32, length // 32, panels[part], d_bits, d, m_bits, m)
                multiply_panel(panels[part], packed, first, length, partials[part], tile)
            store_partial(partials[part], y, g * 64)
