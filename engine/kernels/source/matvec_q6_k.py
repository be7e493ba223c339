"""y = W x for Q6_K: blocks of 256 as 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales, float16 d.

Value (q - 32) * scale * d, one scale for 16 values.  Each half of 128 keeps values k, k + 32, k + 64, k + 96 in nibble
bytes k and k + 32 and in the four bit pairs of byte k.  A pair with its top bit turned makes q - 32 in two's complement: at
the top of 16 bits, (q - 32) * 2**10.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, bits, floats, total, factors, n_blocks, n_twos):
    """Of each half, 16 nibble bytes at a time: j tells whether values k and k + 64 or k + 32 and k + 96.  factors: the 16
    scales times d, even and odd rows of each."""
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 6720 + 6656 + lane]
            high = data[block * 6720 + 6688 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for i in range(8 * n_twos):
            #omp simd
            for lane in range(32):
                pair = data[block * 6720 + 6144 + i * 32 + lane]
                factors[i * 64 + lane] = np.float32(np.int16(pair << np.uint16(8)) >> np.int16(8)) * (floats[lane] * to_half)
                factors[i * 64 + 32 + lane] = np.float32(np.int16(pair) >> np.int16(8)) * (floats[32 + lane] * to_half)
        for half in range(n_twos):
            for j in range(n_twos):
                up = np.uint16(4 - 3 * j)
                low_scale = scales[block * 8 + half * 4 + j] * np.float32(32)
                high_scale = scales[block * 8 + half * 4 + j + 2] * np.float32(32)
                for piece in range(n_twos):
                    #omp simd
                    for lane in range(32):
                        even_low = np.int16(-1)
                        even_high = np.int16(-1)
                        odd_low = np.int16(-1)
                        odd_high = np.int16(-1)
                        for k in range(16):
                            q = data[block * 6720 + half * 2048 + j * 1024 + piece * 512 + k * 32 + lane]
                            h = np.uint16((data[block * 6720 + 4096 + half * 1024 + piece * 512 + k * 32 + lane] ^ np.uint16(0xAAAA)) * up)
                            first = x[block * 256 + half * 128 + j * 32 + piece * 16 + k]
                            second = x[block * 256 + half * 128 + j * 32 + piece * 16 + 64 + k]
                            even_low = np.int16(even_low + product(((q << np.uint16(10)) & np.uint16(0x3C00)) | ((h << np.uint16(12)) & np.uint16(0xC000)), first))
                            even_high = np.int16(even_high + product(((q << np.uint16(6)) & np.uint16(0x3C00)) | ((h << np.uint16(8)) & np.uint16(0xC000)), second))
                            odd_low = np.int16(odd_low + product(((q << np.uint16(2)) & np.uint16(0x3C00)) | ((h << np.uint16(4)) & np.uint16(0xC000)), first))
                            odd_high = np.int16(odd_high + product(((q >> np.uint16(2)) & np.uint16(0x3C00)) | (h & np.uint16(0xC000)), second))
                        total[lane] += (np.float32(even_low) * (factors[half * 512 + j * 128 + piece * 64 + lane] * low_scale)
                                        + np.float32(even_high) * (factors[half * 512 + j * 128 + piece * 64 + 256 + lane] * high_scale))
                        total[32 + lane] += (
                            np.float32(odd_low) * (factors[half * 512 + j * 128 + piece * 64 + 32 + lane] * low_scale)
                            + np.float32(odd_high) * (factors[half * 512 + j * 128 + piece * 64 + 288 + lane] * high_scale))


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 210 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
    cols / 32], as `tokens_to_fixed` leaves them; y: float32[n, groups, 64], overwritten.

    Scratch: bits uint32[threads, 128], scratch float32[threads, 3, 1024].
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
