"""y = W x for Q5_0: blocks of 32 as float16 d, 4 bytes of fifth bits and 16 bytes of nibbles; value (q - 16) * d.

Low nibbles are values 0 to 15, high ones 16 to 31; the fifth bit of value j is bit j of the 32.  A fifth bit that is
turned makes q - 16 in two's complement: at the top of 16 bits, (q - 16) * 2**11.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, bits, floats, total, n_blocks):
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 704 + lane]
            high = data[block * 704 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        scale = scales[block] * np.float32(16)
        #omp simd
        for lane in range(32):
            even = np.int16(-2)
            odd = np.int16(-2)
            a = data[block * 704 + 64 + lane] ^ np.uint16(0xFFFF)
            b = data[block * 704 + 64 + 32 + lane] ^ np.uint16(0xFFFF)
            c = data[block * 704 + 64 + 64 + lane] ^ np.uint16(0xFFFF)
            d = data[block * 704 + 64 + 96 + lane] ^ np.uint16(0xFFFF)
            for k in range(8):
                q = data[block * 704 + 192 + k * 32 + lane]
                first = x[block * 32 + k]
                second = x[block * 32 + 16 + k]
                even = np.int16(even + product(((q << np.uint16(11)) & np.uint16(0x7800)) | ((a << np.uint16(15 - k)) & np.uint16(0x8000)), first))
                even = np.int16(even + product(((q << np.uint16(7)) & np.uint16(0x7800)) | ((c << np.uint16(15 - k)) & np.uint16(0x8000)), second))
                odd = np.int16(odd + product(((q << np.uint16(3)) & np.uint16(0x7800)) | ((a << np.uint16(7 - k)) & np.uint16(0x8000)), first))
                odd = np.int16(odd + product(((q >> np.uint16(1)) & np.uint16(0x7800)) | ((c << np.uint16(7 - k)) & np.uint16(0x8000)), second))
            for k in range(8):
                q = data[block * 704 + 192 + 256 + k * 32 + lane]
                first = x[block * 32 + 8 + k]
                second = x[block * 32 + 24 + k]
                even = np.int16(even + product(((q << np.uint16(11)) & np.uint16(0x7800)) | ((b << np.uint16(15 - k)) & np.uint16(0x8000)), first))
                even = np.int16(even + product(((q << np.uint16(7)) & np.uint16(0x7800)) | ((d << np.uint16(15 - k)) & np.uint16(0x8000)), second))
                odd = np.int16(odd + product(((q << np.uint16(3)) & np.uint16(0x7800)) | ((b << np.uint16(7 - k)) & np.uint16(0x8000)), first))
                odd = np.int16(odd + product(((q >> np.uint16(1)) & np.uint16(0x7800)) | ((d << np.uint16(7 - k)) & np.uint16(0x8000)), second))
            total[lane] += np.float32(even) * (floats[lane] * to_half * scale)
            total[32 + lane] += np.float32(odd) * (floats[32 + lane] * to_half * scale)


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 22 * 32], two bytes in one; x: int16[n, blocks * 32], scales and sums: float32[n,
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
                add_group(data[g], x[token], scales[token], bits[part], floats[part], scratch[part, 0], n_blocks)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
