"""y = W x for Q6_K: blocks of 256 as 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales, float16 d.

Value (q - 32) * scale * d, one scale for 16 values.  Each half of 128 keeps values k, k + 32, k + 64, k + 96 in nibble
bytes k and k + 32 and in the four bit pairs of byte k."""

import numpy as np

from .interleaved import block_sums, half_bits, store_rows


def group(data, x, x_sums, total, d_bits, d, scales, n_blocks):
    to_half = np.float32(2.0**112)
    for row in range(64):
        total[row] = np.float32(0)
    for block in range(n_blocks):
        start = block * 210 * 64
        half_bits(data, start + 208 * 64, d_bits)
        for j in range(start, start + 16 * 64, 64):
            for row in range(d.shape[0]):
                scales[j - start + row] = np.float32(np.int8(data[j + 192 * 64 + row])) * (d[row] * to_half)
        for quarter in range(block * 4, block * 4 + 4):
            half = quarter // 2 - block * 2
            k_first = (quarter - quarter // 2 * 2) * 16
            nibbles = start + (half * 64 + k_first) * 64
            pairs = start + (128 + half * 32 + k_first) * 64
            column = block * 256 + half * 128 + k_first
            sub = half * 8 + k_first // 16
            offset_0 = np.float32(32) * x_sums[block * 16 + sub]
            offset_1 = np.float32(32) * x_sums[block * 16 + sub + 2]
            offset_2 = np.float32(32) * x_sums[block * 16 + sub + 4]
            offset_3 = np.float32(32) * x_sums[block * 16 + sub + 6]
            for row in range(64):
                s0 = np.float32(0)
                s1 = np.float32(0)
                s2 = np.float32(0)
                s3 = np.float32(0)
                for k in range(16):
                    a = data[nibbles + k * 64 + row]
                    b = data[nibbles + (32 + k) * 64 + row]
                    h = data[pairs + k * 64 + row]
                    s0 += np.float32((a & np.uint8(15)) | ((h & np.uint8(3)) << np.uint8(4))) * x[column + k]
                    s1 += np.float32((b & np.uint8(15)) | ((h & np.uint8(12)) << np.uint8(2))) * x[column + 32 + k]
                    s2 += np.float32((a >> np.uint8(4)) | (h & np.uint8(48))) * x[column + 64 + k]
                    s3 += np.float32((b >> np.uint8(4)) | ((h & np.uint8(192)) >> np.uint8(2))) * x[column + 96 + k]
                total[row] += (s0 - offset_0) * scales[sub * 64 + row] + (s1 - offset_1) * scales[(sub + 2) * 64 + row]
                total[row] += (s2 - offset_2) * scales[(sub + 4) * 64 + row] + (s3 - offset_3) * scales[(sub + 6) * 64 + row]


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), int)
def matvec(data, x, y, threads):
    """data: uint8[groups, blocks * 210 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten."""
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
        d = d_bits.view(np.float32)
        scales = np.empty(16 * 64, np.float32)
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(n):
                group(data[g], x[token], sums[token], total, d_bits, d, scales, n_blocks)
                store_rows(total, y[token], g * 64)
