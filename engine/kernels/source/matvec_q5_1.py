"""y = W x for Q5_1: blocks of 32 as float16 d and m, 4 bytes of fifth bits, 16 bytes of nibbles; value q * d + m."""

import numpy as np

from .interleaved import block_sums, half_bits, store_rows


def group(data, x, x_sums, total, d_bits, d, m_bits, m, n_blocks):
    to_half = np.float32(2.0**112)
    for row in range(64):
        total[row] = np.float32(0)
    for block in range(n_blocks):
        start = block * 24 * 64
        half_bits(data, start, d_bits)
        half_bits(data, start + 128, m_bits)
        for row in range(64):
            low = np.float32(0)
            high = np.float32(0)
            for k in range(8):
                bits = data[start + 4 * 64 + row]
                q = data[start + (8 + k) * 64 + row]
                fifth = ((bits >> np.uint8(k)) & np.uint8(1)) << np.uint8(4)
                low += np.float32((q & np.uint8(15)) | fifth) * x[block * 32 + k]
                bits = data[start + 6 * 64 + row]
                fifth = ((bits >> np.uint8(k)) & np.uint8(1)) << np.uint8(4)
                high += np.float32((q >> np.uint8(4)) | fifth) * x[block * 32 + 16 + k]
            for k in range(8):
                bits = data[start + 5 * 64 + row]
                q = data[start + (16 + k) * 64 + row]
                fifth = ((bits >> np.uint8(k)) & np.uint8(1)) << np.uint8(4)
                low += np.float32((q & np.uint8(15)) | fifth) * x[block * 32 + 8 + k]
                bits = data[start + 7 * 64 + row]
                fifth = ((bits >> np.uint8(k)) & np.uint8(1)) << np.uint8(4)
                high += np.float32((q >> np.uint8(4)) | fifth) * x[block * 32 + 24 + k]
            total[row] += (low + high) * (d[row] * to_half) + x_sums[block] * (m[row] * to_half)


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int)
def matvec(data, x, y, threads):
    """data: uint8[groups, blocks * 24 * 64]; x: float32[n, blocks * 32]; y: float32[n, rows], overwritten."""
    n = x.shape[0]
    n_blocks = x.shape[1] // 32
    n_groups = data.shape[0]
    sums = np.empty((n, x.shape[1] // 32), np.float32)
    for token in range(n):
        block_sums(x[token], sums[token], 32, x.shape[1] // 32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        total = np.empty(64, np.float32)
        d_bits = np.empty(64, np.int32)
        m_bits = np.empty(64, np.int32)
        d = d_bits.view(np.float32)
        m = m_bits.view(np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(n):
                group(data[g], x[token], sums[token], total, d_bits, d, m_bits, m, n_blocks)
                store_rows(total, y[token], g * 64)
