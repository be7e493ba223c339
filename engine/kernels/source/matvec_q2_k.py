"""y = W x for Q2_K: blocks of 256 as 16 bytes of scale and minimum, 64 bytes of bit pairs, float16 d and dmin.

Sub-block i of 16 has the value q * (d * scale_i) - dmin * minimum_i, low and high nibble of byte i.  Each half of 128 keeps
values k, k + 32, k + 64 and k + 96 in the four bit pairs of byte k.  q is taken as (q - 2) + 2: a pair with its top bit
turned is q - 2 in two's complement, at the top of 16 bits (q - 2) * 2**14; the rest is multiplied with sums of x, which
`tokens_to_fixed` gives for 32 columns: of the first 16 of them they are made here.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def sum_of_16(x, first):
    total = np.int32(0)
    for k in range(16):
        total += np.int32(x[first + k])
    return np.float32(total)


def add_group(data, x, scales, sums, bits, floats, total, factors, offsets, n_blocks, n_twos):
    """factors: the 16 scales times d, even and odd rows of each; offsets: 2 * factor - dmin * minimum likewise."""
    to_half = np.float32(2.0**112)
    two = np.float32(2)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 2688 + 2560 + lane]
            high = data[block * 2688 + 2592 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 2688 + 2624 + lane]
            high_m = data[block * 2688 + 2656 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        for i in range(8 * n_twos):
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 2688 + i * 32 + lane])
                factors[i * 64 + lane] = np.float32(s & np.int32(15)) * (floats[lane] * to_half)
                factors[i * 64 + 32 + lane] = np.float32((s >> np.int32(8)) & np.int32(15)) * (floats[32 + lane] * to_half)
                offsets[i * 64 + lane] = np.float32((s >> np.int32(4)) & np.int32(15)) * (floats[64 + lane] * to_half)
                offsets[i * 64 + 32 + lane] = np.float32(s >> np.int32(12)) * (floats[96 + lane] * to_half)
            #omp simd
            for row in range(64):
                offsets[i * 64 + row] = factors[i * 64 + row] * two - offsets[i * 64 + row]
        for j in range(4 * n_twos):
            first = sum_of_16(x, block * 256 + j * 32) * scales[block * 8 + j]
            second = sums[block * 8 + j] - first
            #omp simd
            for row in range(64):
                total[row] += offsets[j * 128 + row] * first + offsets[j * 128 + 64 + row] * second
        for half in range(n_twos):
            scale0 = scales[block * 8 + half * 4] * np.float32(2)
            scale1 = scales[block * 8 + half * 4 + 1] * np.float32(2)
            scale2 = scales[block * 8 + half * 4 + 2] * np.float32(2)
            scale3 = scales[block * 8 + half * 4 + 3] * np.float32(2)
            for piece in range(n_twos):
                #omp simd
                for lane in range(32):
                    even0 = np.int16(-2)
                    even1 = np.int16(-2)
                    even2 = np.int16(-2)
                    even3 = np.int16(-2)
                    odd0 = np.int16(-2)
                    odd1 = np.int16(-2)
                    odd2 = np.int16(-2)
                    odd3 = np.int16(-2)
                    for k in range(16):
                        q = data[block * 2688 + 512 + half * 1024 + piece * 512 + k * 32 + lane] ^ np.uint16(0xAAAA)
                        x0 = x[block * 256 + half * 128 + piece * 16 + k]
                        x1 = x[block * 256 + half * 128 + piece * 16 + 32 + k]
                        x2 = x[block * 256 + half * 128 + piece * 16 + 64 + k]
                        x3 = x[block * 256 + half * 128 + piece * 16 + 96 + k]
                        even0 = np.int16(even0 + product(q << np.uint16(14), x0))
                        even1 = np.int16(even1 + product((q << np.uint16(12)) & np.uint16(0xC000), x1))
                        even2 = np.int16(even2 + product((q << np.uint16(10)) & np.uint16(0xC000), x2))
                        even3 = np.int16(even3 + product((q << np.uint16(8)) & np.uint16(0xC000), x3))
                        odd0 = np.int16(odd0 + product((q << np.uint16(6)) & np.uint16(0xC000), x0))
                        odd1 = np.int16(odd1 + product((q << np.uint16(4)) & np.uint16(0xC000), x1))
                        odd2 = np.int16(odd2 + product((q << np.uint16(2)) & np.uint16(0xC000), x2))
                        odd3 = np.int16(odd3 + product(q & np.uint16(0xC000), x3))
                    total[lane] += (np.float32(even0) * (factors[half * 512 + piece * 64 + lane] * scale0)
                                    + np.float32(even1) * (factors[half * 512 + piece * 64 + 128 + lane] * scale1)
                                    + np.float32(even2) * (factors[half * 512 + piece * 64 + 256 + lane] * scale2)
                                    + np.float32(even3) * (factors[half * 512 + piece * 64 + 384 + lane] * scale3))
                    total[32 + lane] += (np.float32(odd0) * (factors[half * 512 + piece * 64 + 32 + lane] * scale0)
                                         + np.float32(odd1) * (factors[half * 512 + piece * 64 + 160 + lane] * scale1)
                                         + np.float32(odd2) * (factors[half * 512 + piece * 64 + 288 + lane] * scale2)
                                         + np.float32(odd3) * (factors[half * 512 + piece * 64 + 416 + lane] * scale3))


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 84 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
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
                add_group(data[g], x[token], scales[token], sums[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2], n_blocks, scratch.shape[2] // 512)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
