"""y = W x for Q5_1: blocks of 32 as float16 d and m, 4 bytes of fifth bits and 16 bytes of nibbles; value q * d + m.

Taken as (q - 16) * d + (16 * d + m); q - 16 as in matvec_q5_0.py, and the second part times the sum of x.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, sums, bits, floats, total, n_blocks):
    to_half = np.float32(2.0**112)
    sixteen = np.float32(16)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 768 + lane]
            high = data[block * 768 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 768 + 64 + lane]
            high_m = data[block * 768 + 96 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        scale = scales[block] * sixteen
        rest = sums[block]
        #omp simd
        for lane in range(32):
            even = np.int16(-2)
            odd = np.int16(-2)
            a = data[block * 768 + 128 + lane] ^ np.uint16(0xFFFF)
            b = data[block * 768 + 128 + 32 + lane] ^ np.uint16(0xFFFF)
            c = data[block * 768 + 128 + 64 + lane] ^ np.uint16(0xFFFF)
            d = data[block * 768 + 128 + 96 + lane] ^ np.uint16(0xFFFF)
            for k in range(8):
                q = data[block * 768 + 256 + k * 32 + lane]
                first = x[block * 32 + k]
                second = x[block * 32 + 16 + k]
                even = np.int16(even + product(((q << np.uint16(11)) & np.uint16(0x7800)) | ((a << np.uint16(15 - k)) & np.uint16(0x8000)), first))
                even = np.int16(even + product(((q << np.uint16(7)) & np.uint16(0x7800)) | ((c << np.uint16(15 - k)) & np.uint16(0x8000)), second))
                odd = np.int16(odd + product(((q << np.uint16(3)) & np.uint16(0x7800)) | ((a << np.uint16(7 - k)) & np.uint16(0x8000)), first))
                odd = np.int16(odd + product(((q >> np.uint16(1)) & np.uint16(0x7800)) | ((c << np.uint16(7 - k)) & np.uint16(0x8000)), second))
            for k in range(8):
                q = data[block * 768 + 256 + 256 + k * 32 + lane]
                first = x[block * 32 + 8 + k]
                second = x[block * 32 + 24 + k]
                even = np.int16(even + product(((q << np.uint16(11)) & np.uint16(0x7800)) | ((b << np.uint16(15 - k)) & np.uint16(0x8000)), first))
                even = np.int16(even + product(((q << np.uint16(7)) & np.uint16(0x7800)) | ((d << np.uint16(15 - k)) & np.uint16(0x8000)), second))
                odd = np.int16(odd + product(((q << np.uint16(3)) & np.uint16(0x7800)) | ((b << np.uint16(7 - k)) & np.uint16(0x8000)), first))
                odd = np.int16(odd + product(((q >> np.uint16(1)) & np.uint16(0x7800)) | ((d << np.uint16(7 - k)) & np.uint16(0x8000)), second))
            f = floats[lane] * to_half
            total[lane] += np.float32(even) * (f * scale) + (f * sixteen + floats[64 + lane] * to_half) * rest
            g = floats[32 + lane] * to_half
            total[32 + lane] += np.float32(odd) * (g * scale) + (g * sixteen + floats[96 + lane] * to_half) * rest


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 24 * 32], two bytes in one; x: int16[n, blocks * 32], scales and sums: float32[n,
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
