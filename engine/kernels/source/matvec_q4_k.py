"""y = W x for Q4_K: blocks of 256 as float16 d and dmin, 12 bytes of 6-bit scales and minima, 128 bytes of nibbles.

Sub-block j of 32 has the value q * (d * scale_j) - dmin * minimum_j; sub-blocks 2c and 2c + 1 are the low and high
nibbles of chunk c.
"""

import numpy as np

from .interleaved import block_sums, clear_rows, store_rows
from .k_scales import sub_block_scales


def add_chunk(quants, x, sums, scales, minima, total):
    """Two sub-blocks: 32 bytes of nibbles against 64 numbers of x."""
    for row in range(64):
        low = np.float32(0)
        high = np.float32(0)
        for k in range(16):
            q = quants[k * 64 + row]
            r = quants[(k + 16) * 64 + row]
            low += np.float32(q & np.uint8(15)) * x[k] + np.float32(r & np.uint8(15)) * x[16 + k]
            high += np.float32(q >> np.uint8(4)) * x[32 + k] + np.float32(r >> np.uint8(4)) * x[48 + k]
        total[row] += low * scales[row] + high * scales[64 + row] - sums[0] * minima[row] - sums[1] * minima[64 + row]


def add_block(block, x, sums, bits, floats, total, scales, minima):
    sub_block_scales(block, bits, floats, total[64:], scales, minima)
    for chunk in range(scales.shape[0] // 256):
        add_chunk(block[(16 + chunk * 32) * 64:], x[chunk * 64:], sums[chunk * 2:], scales[chunk * 128:],
                  minima[chunk * 128:], total)


def add_group(data, x, sums, bits, floats, total, work, more, n_blocks):
    clear_rows(total)
    for block in range(n_blocks):
        add_block(data[block * 9216:], x[block * 256:], sums[block * 8:], bits, floats, total, work, more)


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, sums, bits, scratch, threads):
    """data: uint8[groups, blocks * 144 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten.

    Scratch: sums float32[n, cols / 32], bits int32[threads, 64], scratch float32[threads, 3, 1024].
    """
    n_blocks = x.shape[1] // 256
    n_groups = data.shape[0]
    for token in range(x.shape[0]):
        block_sums(x[token], sums[token], 32, x.shape[1] // 32)
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], sums[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1],
                          scratch[part, 2], n_blocks)
                store_rows(scratch[part, 0], y[token], g * 64)
