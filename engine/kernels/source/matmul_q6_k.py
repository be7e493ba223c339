"""y = W x for many tokens and Q6_K; the format is told in matvec_q6_k.py."""

import numpy as np

from .interleaved import half_bits
from .panel import clear, multiply_panel, pack_tile, store_partial


def decode(data, block, panel, d_bits, d, scales):
    to_half = np.float32(2.0**112)
    start = block * 210 * 64
    half_bits(data, start + 208 * 64, d_bits)
    for j in range(start, start + 16 * 64, 64):
        for row in range(d.shape[0]):
            scales[j - start + row] = np.float32(np.int8(data[j + 192 * 64 + row])) * (d[row] * to_half)
    for first in range(block, block + 2):
        half = first - block
        for k in range(half * 32, half * 32 + 32):
            j = k - half * 32
            nibbles = start + (half * 64 + j) * 64
            pairs = start + (128 + k) * 64
            target = (half * 128 + j) * 64
            sub = (half * 8 + j // 16) * 64
            for row in range(d.shape[0]):
                a = data[nibbles + row]
                b = data[nibbles + 32 * 64 + row]
                h = data[pairs + row]
                q0 = (a & np.uint8(15)) | ((h & np.uint8(3)) << np.uint8(4))
                q1 = (b & np.uint8(15)) | ((h & np.uint8(12)) << np.uint8(2))
                q2 = (a >> np.uint8(4)) | (h & np.uint8(48))
                q3 = (b >> np.uint8(4)) | ((h & np.uint8(192)) >> np.uint8(2))
                panel[target + row] = (np.float32(q0) - np.float32(32)) * scales[sub + row]
                panel[target + 32 * 64 + row] = (np.float32(q1) - np.float32(32)) * scales[sub + 128 + row]
                panel[target + 64 * 64 + row] = (np.float32(q2) - np.float32(32)) * scales[sub + 256 + row]
                panel[target + 96 * 64 + row] = (np.float32(q3) - np.float32(32)) * scales[sub + 384 + row]


# pythran export matmul(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int, int)
def matmul(data, x, y, packed, panels, partials, tile, threads):
    """data: uint8[groups, blocks * 210 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten.

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
        d = d_bits.view(np.float32)
        scales = np.empty(16 * 64, np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            clear(partials[part])
            for first in range(0, n_cols, 256):
                length = min(256, n_cols - first)
                decode(data[g], first // 256, panels[part], d_bits, d, scales)
                multiply_panel(panels[part], packed, first, length, partials[part], tile)
            store_partial(partials[part], y, g * 64)
