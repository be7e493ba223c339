"""y = W x for Q3_K: blocks of 256 as 32 bytes of third bits, 64 bytes of bit pairs, 12 bytes of 6-bit scales, float16 d.

Sub-block i of 16 has the value (q - 4) * (scale_i - 32) * d.  Each half of 128 keeps values k, k + 32, k + 64 and k + 96 in
the four bit pairs of byte k; their third bits are bits 0 to 3 of byte k, for the second half bits 4 to 7.  With the third
bit turned, q - 4 in two's complement: at the top of 16 bits, (q - 4) * 2**13.  Scales i and i + 8 have their low nibbles
in byte i, and bits 0-1, 2-3, 4-5 and 6-7 of byte 8 + i are the upper bits of scales i, i + 4, i + 8 and i + 12.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, bits, floats, total, factors, n_blocks, n_twos):
    """factors: the 16 scales times d, even and odd rows of each."""
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 3520 + 3456 + lane]
            high = data[block * 3520 + 3488 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for four in range(n_twos):
            down = np.int32(2 * four)
            for i in range(2 * n_twos):
                #omp simd
                for lane in range(32):
                    s = np.int32(data[block * 3520 + 3072 + four * 128 + i * 32 + lane])
                    upper = np.int32(data[block * 3520 + 3328 + i * 32 + lane]) >> down
                    even = floats[lane] * to_half
                    odd = floats[32 + lane] * to_half
                    factors[four * 256 + i * 64 + lane] = even * np.float32(((s & np.int32(15)) | ((upper << np.int32(4)) & np.int32(0x30))) - np.int32(32))
                    factors[four * 256 + i * 64 + 32 + lane] = odd * np.float32((((s >> np.int32(8)) & np.int32(15)) | ((upper >> np.int32(4)) & np.int32(0x30))) - np.int32(32))
                    factors[512 + four * 256 + i * 64 + lane] = even * np.float32((((s >> np.int32(4)) & np.int32(15)) | (upper & np.int32(0x30))) - np.int32(32))
                    factors[512 + four * 256 + i * 64 + 32 + lane] = odd * np.float32(((s >> np.int32(12)) | ((upper >> np.int32(8)) & np.int32(0x30))) - np.int32(32))
        for half in range(n_twos):
            for pair in range(n_twos):
                up = np.uint16(1 << (6 - 4 * half - 2 * pair))
                down = np.uint16(4 * pair)
                low_scale = scales[block * 8 + half * 4 + pair * 2] * np.float32(4)
                high_scale = scales[block * 8 + half * 4 + pair * 2 + 1] * np.float32(4)
                for piece in range(n_twos):
                    #omp simd
                    for lane in range(32):
                        even_low = np.int16(-2)
                        even_high = np.int16(-2)
                        odd_low = np.int16(-2)
                        odd_high = np.int16(-2)
                        for k in range(16):
                            q = data[block * 3520 + 1024 + half * 1024 + piece * 512 + k * 32 + lane] >> down
                            # third bits of both values: of even rows to 6 and 7, of odd rows to 14 and 15
                            h = np.uint16((data[block * 3520 + piece * 512 + k * 32 + lane] ^ np.uint16(0xFFFF)) * up)
                            first = x[block * 256 + half * 128 + pair * 64 + piece * 16 + k]
                            second = x[block * 256 + half * 128 + pair * 64 + piece * 16 + 32 + k]
                            even_low = np.int16(even_low + product(((q << np.uint16(13)) & np.uint16(0x6000)) | ((h << np.uint16(9)) & np.uint16(0x8000)), first))
                            even_high = np.int16(even_high + product(((q << np.uint16(11)) & np.uint16(0x6000)) | ((h << np.uint16(8)) & np.uint16(0x8000)), second))
                            odd_low = np.int16(odd_low + product(((q << np.uint16(5)) & np.uint16(0x6000)) | ((h << np.uint16(1)) & np.uint16(0x8000)), first))
                            odd_high = np.int16(odd_high + product(((q << np.uint16(3)) & np.uint16(0x6000)) | (h & np.uint16(0x8000)), second))
                        total[lane] += (np.float32(even_low) * (factors[half * 512 + pair * 256 + piece * 64 + lane] * low_scale)
                                        + np.float32(even_high) * (factors[half * 512 + pair * 256 + piece * 64 + 128 + lane] * high_scale))
                        total[32 + lane] += (np.float32(odd_low) * (factors[half * 512 + pair * 256 + piece * 64 + 32 + lane] * low_scale)
                                             + np.float32(odd_high) * (factors[half * 512 + pair * 256 + piece * 64 + 160 + lane] * high_scale))


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 110 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
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
                add_group(data[g], x[token], scales[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1], n_blocks, scratch.shape[2] // 512)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
