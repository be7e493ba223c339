"""y = W x for Q4_0: blocks of 32 as float16 d and 16 bytes of nibbles, low ones first; value (q - 8) * d.

A nibble with its top bit turned is q - 8 in two's complement: moved to the top of 16 bits, (q - 8) * 2**12.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, bits, floats, total, n_blocks):
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 576 + lane]
            high = data[block * 576 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        scale = scales[block] * np.float32(8)
        #omp simd
        for lane in range(32):
            even = np.int16(-3)
            odd = np.int16(-3)
            for k in range(16):
                q = data[block * 576 + 64 + k * 32 + lane] ^ np.uint16(0x8888)
                first = x[block * 32 + k]
                second = x[block * 32 + 16 + k]
                even = np.int16(even + product(q << np.uint16(12), first))
                even = np.int16(even + product((q << np.uint16(8)) & np.uint16(0xF000), second))
                odd = np.int16(odd + product((q << np.uint16(4)) & np.uint16(0xF000), first))
                odd = np.int16(odd + product(q & np.uint16(0xF000), second))
            total[lane] += np.float32(even) * (floats[lane] * to_half * scale)
            total[32 + lane] += np.float32(odd) * (floats[32 + lane] * to_half * scale)


def add_group_of_two(data, x, y, scales_x, scales_y, bits, floats, total, other, n_blocks):
    """For two tokens at once: a weight is brought to the top of its word once for both."""
    to_half = np.float32(2.0**112)
    clear_rows(total)
    clear_rows(other)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 576 + lane]
            high = data[block * 576 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        scale_x = scales_x[block] * np.float32(8)
        scale_y = scales_y[block] * np.float32(8)
        #omp simd
        for lane in range(32):
            even_x = np.int16(-3)
            odd_x = np.int16(-3)
            even_y = np.int16(-3)
            odd_y = np.int16(-3)
            for k in range(16):
                q = data[block * 576 + 64 + k * 32 + lane] ^ np.uint16(0x8888)
                a = q << np.uint16(12)
                b = (q << np.uint16(8)) & np.uint16(0xF000)
                c = (q << np.uint16(4)) & np.uint16(0xF000)
                d = q & np.uint16(0xF000)
                even_x = np.int16(even_x + product(a, x[block * 32 + k]))
                even_x = np.int16(even_x + product(b, x[block * 32 + 16 + k]))
                odd_x = np.int16(odd_x + product(c, x[block * 32 + k]))
                odd_x = np.int16(odd_x + product(d, x[block * 32 + 16 + k]))
                even_y = np.int16(even_y + product(a, y[block * 32 + k]))
                even_y = np.int16(even_y + product(b, y[block * 32 + 16 + k]))
                odd_y = np.int16(odd_y + product(c, y[block * 32 + k]))
                odd_y = np.int16(odd_y + product(d, y[block * 32 + 16 + k]))
            total[lane] += np.float32(even_x) * (floats[lane] * to_half * scale_x)
            total[32 + lane] += np.float32(odd_x) * (floats[32 + lane] * to_half * scale_x)
            other[lane] += np.float32(even_y) * (floats[lane] * to_half * scale_y)
            other[32 + lane] += np.float32(odd_y) * (floats[32 + lane] * to_half * scale_y)


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 18 * 32], two bytes in one; x: int16[n, blocks * 32], scales and sums: float32[n,
    cols / 32], as `tokens_to_fixed` leaves them; y: float32[n, groups, 64], overwritten.

    Scratch: bits uint32[threads, 128], scratch float32[threads, 3 or more, 1024 or more].
    """
    n_groups = data.shape[0]
    n_blocks = x.shape[1] // 32
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for pair in range(x.shape[0] // 2):
                add_group_of_two(data[g], x[2 * pair], x[2 * pair + 1], scales[2 * pair], scales[2 * pair + 1], bits[part], floats[part], scratch[part, 0], scratch[part, 1], n_blocks)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[2 * pair, g])
                store_rows(scratch[part, 1, :32], scratch[part, 1, 32:64], y[2 * pair + 1, g])
            for token in range(x.shape[0] // 2 * 2, x.shape[0]):
                add_group(data[g], x[token], scales[token], bits[part], floats[part], scratch[part, 0], n_blocks)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
