"""y = W x for Q5_K: blocks of 256 as Q4_K's, with 32 bytes of fifth bits before the nibbles.

Bit j of fifth-bit byte k belongs to value k of sub-block j."""

import numpy as np

from .interleaved import block_sums, half_bits, store_rows
from .k_scales import sub_block_scales


def group(data, x, x_sums, total, d_bits, d, min_bits, d_min, scales, minima, n_blocks):
    for row in range(64):
        total[row] = np.float32(0)
    for block in range(n_blocks):
        start = block * 176 * 64
        half_bits(data, start, d_bits)
        half_bits(data, start + 128, min_bits)
        sub_block_scales(data, start + 4 * 64, d, d_min, scales, minima)
        for piece in range(block * 8, block * 8 + 8):
            chunk = piece // 2 - block * 4
            part = (piece - piece // 2 * 2) * 16
            fifths = start + (16 + part) * 64
            quants = start + (48 + chunk * 32 + part) * 64
            column = block * 256 + chunk * 64 + part
            pair = chunk * 128
            bit = np.uint8(chunk * 2)
            next_bit = np.uint8(chunk * 2 + 1)
            first_sum = x_sums[column // 16]
            second_sum = x_sums[column // 16 + 2]
            for row in range(64):
                low = np.float32(0)
                high = np.float32(0)
                for k in range(16):
                    q = data[quants + k * 64 + row]
                    fifth = data[fifths + k * 64 + row]
                    low += np.float32((q & np.uint8(15)) | (((fifth >> bit) & np.uint8(1)) << np.uint8(4))) * x[column + k]
                    high += np.float32((q >> np.uint8(4)) | (((fifth >> next_bit) & np.uint8(1)) << np.uint8(4))) * x[column + 32 + k]
                total[row] += low * scales[pair + row] - first_sum * minima[pair + row]
                total[row] += high * scales[pair + 64 + row] - second_sum * minima[pair + 64 + row]


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int)
def matvec(data, x, y, threads):
    """data: uint8[groups, blocks * 176 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten."""
    n = x.shape[0]
    n_blocks = x.shape[1] // 256
    n_groups = data.shape[0]
    sums = np.empty((n, x.shape[1] // 16), np.float32)
    for token in range(n):
        block_sums(x[token], sums[token], 16, x.shape[1] // 16)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        total = np.empty(64, np.float32)
        d_bits = np.empty(64, np.int32)
        min_bits = np.empty(64, np.int32)
        d = d_bits.view(np.float32)
        d_min = min_bits.view(np.float32)
        scales = np.empty(8 * 64, np.float32)
        minima = np.empty(8 * 64, np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(n):
                group(data[g], x[token], sums[token], total, d_bits, d, min_bits, d_min, scales, minima, n_blocks)
                store_rows(total, y[token], g * 64)
