"""y = W x for Q5_1: blocks of 32 as float16 d, float16 m, 32 fifth bits, 16 bytes of nibbles; value q * d + m."""

import numpy as np

from .interleaved import block_sums, clear_rows, half_scales, store_rows


def add_half(quants, fifths, x, total):
    """Eight bytes of nibbles, whose fifth bits lie in one byte for the low and one for the high ones."""
    for row in range(64):
        low_bits = fifths[row]
        high_bits = fifths[128 + row]
        low = np.float32(0)
        high = np.float32(0)
        for k in range(8):
            q = quants[k * 64 + row]
            low += np.float32((q & np.uint8(15)) | (((low_bits >> np.uint8(k)) & np.uint8(1)) << np.uint8(4))) * x[k]
            high += np.float32((q >> np.uint8(4)) | (((high_bits >> np.uint8(k)) & np.uint8(1)) << np.uint8(4))) * x[16 + k]
        total[row] += low + high


def add_block(block, x, sums, bits, floats, total, d, q_sum):
    half_scales(block, bits, floats, d)
    clear_rows(q_sum)
    add_half(block[512:], block[256:], x, q_sum)
    add_half(block[1024:], block[320:], x[8:], q_sum)
    for row in range(64):
        total[row] += q_sum[row] * d[row]
    half_scales(block[128:], bits, floats, d)
    for row in range(64):
        total[row] += sums[0] * d[row]


def add_group(data, x, sums, bits, floats, total, work, more, n_blocks):
    clear_rows(total)
    for block in range(n_blocks):
        add_block(data[block * 1536:], x[block * 32:], sums[block:], bits, floats, total, work, more)


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, sums, bits, scratch, threads):
    """data: uint8[groups, blocks * 24 * 64]; x: float32[n, blocks * 32]; y: float32[n, rows], overwritten.

    Scratch: sums float32[n, cols / 32], bits int32[threads, 64], scratch float32[threads, 3, 1024].
    """
    n_blocks = x.shape[1] // 32
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
