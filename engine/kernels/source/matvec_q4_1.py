"""y = W x for Q4_1: blocks of 32 as float16 d and m and 16 bytes of nibbles, low ones first; value q * d + m.

Taken as (q - 8) * d + (8 * d + m); q - 8 as in matvec_q4_0.py, and the second part times the sum of x.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, sums, bits, floats, total, n_blocks):
    to_half = np.float32(2.0**112)
    eight = np.float32(8)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 640 + lane]
            high = data[block * 640 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 640 + 64 + lane]
            high_m = data[block * 640 + 96 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        scale = scales[block] * eight
        rest = sums[block]
        #omp simd
        for lane in range(32):
            even = np.int16(-3)
            odd = np.int16(-3)
            for k in range(16):
                q = data[block * 640 + 128 + k * 32 + lane] ^ np.uint16(0x8888)
                first = x[block * 32 + k]
                second = x[block * 32 + 16 + k]
                even = np.int16(even + product(q << np.uint16(12), first))
                even = np.int16(even + product((q << np.uint16(8)) & np.uint16(0xF000), second))
                odd = np.int16(odd + product((q << np.uint16(4)) & np.uint16(0xF000), first))
                odd = np.int16(odd + product(q & np.uint16(0xF000), second))
            d = floats[lane] * to_half
            total[lane] += np.float32(even) * (d * scale) + (d * eight + floats[64 + lane] * to_half) * rest
            e = floats[32 + lane] * to_half
            total[32 + lane] += np.float32(odd) * (e * scale) + (e * eight + floats[96 + lane] * to_half) * rest


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 20 * 32], two bytes in one; x: int16[n, blocks * 32], scales and sums: float32[n,
    cols / 32], as `tokens_to_fixed` leaves them; y: float32[n, groups, 64], overwritten.

    Scratch: bits uint32[threads, 128], scratch float32[threads, 3 or more, 1024 or more].
    """
    n_groups = data.shape[0]
    n_blocks = x.shape[1] // 32
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], scales[token], sums[token], bits[part], floats[part], scratch[part, 0], n_blocks)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
