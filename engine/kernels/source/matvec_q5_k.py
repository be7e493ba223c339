"""y = W x for Q5_K: as Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte k tops value k of sub-block j."""

import numpy as np

from .interleaved import block_sums, clear_rows, store_rows
from .k_scales import sub_block_scales


def add_piece(quants, fifths, shift, x, scales, total):
    """16 values of each of two sub-blocks; shift: where their fifth bits lie in each byte."""
    for row in range(64):
        low = np.float32(0)
        high = np.float32(0)
        for k in range(16):
            q = quants[k * 64 + row]
            f = fifths[k * 64 + row] >> shift
            low += np.float32((q & np.uint8(15)) | ((f & np.uint8(1)) << np.uint8(4))) * x[k]
            high += np.float32((q >> np.uint8(4)) | ((f & np.uint8(2)) << np.uint8(3))) * x[32 + k]
        total[row] += low * scales[row] + high * scales[64 + row]


def subtract_minimum(minima, sums, total):
    for row in range(64):
        total[row] -= sums[0] * minima[row]


def add_block(block, x, sums, bits, floats, total, scales, minima):
    sub_block_scales(block, bits, floats, total[64:], scales, minima)
    for piece in range(scales.shape[0] // 128):
        chunk = piece // 2
        offset = piece % 2 * 16
        add_piece(block[(48 + chunk * 32 + offset) * 64:], block[(16 + offset) * 64:], np.uint8(2 * chunk),
                  x[chunk * 64 + offset:], scales[chunk * 128:], total)
    for j in range(scales.shape[0] // 128):
        subtract_minimum(minima[j * 64:], sums[j:], total)


def add_group(data, x, sums, bits, floats, total, work, more, n_blocks):
    clear_rows(total)
    for block in range(n_blocks):
        add_block(data[block * 11264:], x[block * 256:], sums[block * 8:], bits, floats, total, work, more)


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, sums, bits, scratch, threads):
    """data: uint8[groups, blocks * 176 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten.

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
