"""y = W x for Q6_K: blocks of 256 as 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales, float16 d.

Value (q - 32) * scale * d, one scale for 16 values.  Each half of 128 keeps values k, k + 32, k + 64, k + 96 in nibble
bytes k and k + 32 and in the four bit pairs of byte k.
"""

import numpy as np

from .interleaved import block_sums, clear_rows, half_scales, store_rows


def one_scale(packed, d, sums, scales, total):
    """A scale times d, and what the 32 in (q - 32) comes to."""
    #omp simd
    for row in range(64):
        scales[row] = np.float32(np.int8(packed[row])) * d[row]
        total[row] -= np.float32(32) * sums[0] * scales[row]


def add_piece(nibbles, pairs, x, scales, total):
    """8 values of each of four sub-blocks that are two apart."""
    for row in range(64):
        s0 = np.float32(0)
        s1 = np.float32(0)
        s2 = np.float32(0)
        s3 = np.float32(0)
        for k in range(8):
            a = nibbles[k * 64 + row]
            b = nibbles[(32 + k) * 64 + row]
            h = pairs[k * 64 + row]
            s0 += np.float32((a & np.uint8(15)) | ((h & np.uint8(3)) << np.uint8(4))) * x[k]
            s1 += np.float32((b & np.uint8(15)) | ((h & np.uint8(12)) << np.uint8(2))) * x[32 + k]
            s2 += np.float32((a >> np.uint8(4)) | (h & np.uint8(48))) * x[64 + k]
            s3 += np.float32((b >> np.uint8(4)) | ((h & np.uint8(192)) >> np.uint8(2))) * x[96 + k]
        total[row] += (s0 * scales[row] + s1 * scales[128 + row]) + (s2 * scales[256 + row] + s3 * scales[384 + row])


def add_block(block, x, sums, bits, floats, total, d, scales):
    half_scales(block[208 * 64:], bits, floats, d)
    for j in range(scales.shape[0] // 64):
        one_scale(block[(192 + j) * 64:], d, sums[j:], scales[j * 64:], total)
    for piece in range(scales.shape[0] // 128):
        half = piece // 4
        k = piece % 4 * 8
        add_piece(block[(half * 64 + k) * 64:], block[(128 + half * 32 + k) * 64:], x[half * 128 + k:],
                  scales[half * 512 + k // 16 * 64:], total)


def add_group(data, x, sums, bits, floats, total, work, more, n_blocks):
    clear_rows(total)
    for block in range(n_blocks):
        add_block(data[block * 13440:], x[block * 256:], sums[block * 16:], bits, floats, total, work, more)


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, sums, bits, scratch, threads):
    """data: uint8[groups, blocks * 210 * 64]; x: float32[n, blocks * 256]; y: float32[n, rows], overwritten.

    Scratch: sums float32[n, cols / 16], bits int32[threads, 64], scratch float32[threads, 3, 1024].
    """
    n_blocks = x.shape[1] // 256
    n_groups = data.shape[0]
    for token in range(x.shape[0]):
        block_sums(x[token], sums[token], 16, x.shape[1] // 16)
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], sums[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1],
                          scratch[part, 2], n_blocks)
                store_rows(scratch[part, 0], y[token], g * 64)
