"""y = W x for IQ4_XS: blocks of 256 as float16 d, 2 + 4 bytes of 6-bit scales, 128 bytes of nibbles.

Sub-block j of 32 has the values of iq4_values.py times d * (scale_j - 32), from 16 low and then 16 high nibbles.  Byte
4 + i holds the low nibbles of scales 2 i and 2 i + 1; bytes 2 and 3 their upper two bits, four scales in each.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows
from .iq4_values import hidden_zero, iq4_value


def add_group(data, x, scales, bits, floats, total, factors, n_blocks, n_pairs):
    """factors: the 8 scales times d, even and odd rows of each."""
    to_half = np.float32(2.0**112)
    clear_rows(total)
    zero = hidden_zero(n_blocks)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 4352 + lane]
            high = data[block * 4352 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for i in range(n_pairs):
            down = np.int32(4 * (i - i // 2 * 2))
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 4352 + 128 + i * 32 + lane])
                upper = np.int32(data[block * 4352 + 64 + i // 2 * 32 + lane]) >> down
                even = floats[lane] * to_half
                odd = floats[32 + lane] * to_half
                factors[i * 128 + lane] = even * np.float32(((s & np.int32(15)) | ((upper << np.int32(4)) & np.int32(0x30))) - np.int32(32))
                factors[i * 128 + 32 + lane] = odd * np.float32((((s >> np.int32(8)) & np.int32(15)) | ((upper >> np.int32(4)) & np.int32(0x30))) - np.int32(32))
                factors[i * 128 + 64 + lane] = even * np.float32((((s >> np.int32(4)) & np.int32(15)) | ((upper << np.int32(2)) & np.int32(0x30))) - np.int32(32))
                factors[i * 128 + 96 + lane] = odd * np.float32(((s >> np.int32(12)) | ((upper >> np.int32(6)) & np.int32(0x30))) - np.int32(32))
        for j in range(2 * n_pairs):
            scale = scales[block * 8 + j] * np.float32(128)
            #omp simd
            for lane in range(32):
                even = np.int16(0)
                odd = np.int16(0)
                for k in range(16):
                    q = data[block * 4352 + 256 + j * 512 + k * 32 + lane] ^ np.uint16(0x8888)
                    first = x[block * 256 + j * 32 + k]
                    second = x[block * 256 + j * 32 + 16 + k]
                    even = np.int16(even + product(iq4_value(q << np.uint16(12), zero), first))
                    even = np.int16(even + product(iq4_value((q << np.uint16(8)) & np.uint16(0xF000), zero), second))
                    odd = np.int16(odd + product(iq4_value((q << np.uint16(4)) & np.uint16(0xF000), zero), first))
                    odd = np.int16(odd + product(iq4_value(q & np.uint16(0xF000), zero), second))
                total[lane] += np.float32(even) * (factors[j * 64 + lane] * scale)
                total[32 + lane] += np.float32(odd) * (factors[j * 64 + 32 + lane] * scale)


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 136 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
    cols / 32], as `tokens_to_fixed` leaves them; y: float32[n, groups, 64], overwritten.

    Scratch: bits uint32[threads, 128], scratch float32[threads, 3 or more, 1024 or more].
    """
    n_groups = data.shape[0]
    n_blocks = x.shape[1] // 256
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], scales[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1], n_blocks, scratch.shape[2] // 256)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
