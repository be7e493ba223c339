"""y = W x for many tokens and Q4_K; the format is told in matvec_q4_k.py."""

import numpy as np

from .interleaved import half_bits
from .k_scales import sub_block_scales
from .panel import clear, multiply_panel, pack_tile, store_partial


def decode(data, block, panel, d_bits, d, min_bits, d_min, scales, minima):
    start = block * 144 * 64
    half_bits(data, start, d_bits)
    half_bits(data, start + 128, min_bits)
    sub_block_scales(data, start + 4 * 64, d, d_min, scales, minima)
    for first in range(block, block + 4):
        chunk = first - block
        pair = chunk * 128
        for k in range(chunk * 32, chunk * 32 + 32):
            source = start + (16 + k) * 64
            target = (k + chunk * 32) * 64
            for row in range(d.shape[0]):
                q = data[source + row]
                low = q & np.uint8(15)
                high = q >> np.uint8(4)
                panel[target + row] = np.float32(low) * scales[pair + row] - minima[pair + row]
                panel[target + 32 * 64 + row] = np.float32(high) * scales[pair + 64 + row] - minima[pair + 64 + row]


# pythran export matmul(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int, int)
def matmul(data, x, y, packed, panels, partials, tile, threads):
    """data: uint8[groups, blocks * 144 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten.

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
        min_bits = np.empty(64, np.int32)
        d = d_bits.view(np.float32)
        d_min = min_bits.view(np.float32)
        scales = np.empty(8 * 64, np.float32)
        minima = np.empty(8 * 64, np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            clear(partials[part])
            for first in range(0, n_cols, 256):
                length = min(256, n_cols - first)
                decode(data[g], first // 256, panels[part], d_bits, d, min_bits, d_min, scales, minima)
                multiply_panel(panels[part], packed, first, length, partials[part], tile)
            store_partial(partials[part], y, g * 64)
