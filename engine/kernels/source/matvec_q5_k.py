"""y = W x for Q5_K: as Q4_K (matvec_q4_k.py), with 32 bytes of fifth bits before the nibbles.

Bit j of byte k is the fifth bit of value k of sub-block j.  Turned, it makes q - 16, as in matvec_q5_0.py.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, sums, bits, floats, total, work, pairs, n_blocks, n_chunks):
    """pairs: 512 scales, even and odd rows of each sub-block, then 512 minima."""
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 5632 + lane]
            high = data[block * 5632 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 5632 + 64 + lane]
            high_m = data[block * 5632 + 96 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        for j in range(n_chunks):
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 5632 + 128 + j * 32 + lane])
                m = np.int32(data[block * 5632 + 256 + j * 32 + lane])
                both = np.int32(data[block * 5632 + 384 + j * 32 + lane])
                pairs[j * 64 + lane] = np.float32(s & np.int32(63))
                pairs[j * 64 + 32 + lane] = np.float32((s >> np.int32(8)) & np.int32(63))
                pairs[512 + j * 64 + lane] = np.float32(m & np.int32(63))
                pairs[512 + j * 64 + 32 + lane] = np.float32((m >> np.int32(8)) & np.int32(63))
                pairs[256 + j * 64 + lane] = np.float32((both & np.int32(15)) | ((s >> np.int32(2)) & np.int32(0x30)))
                pairs[256 + j * 64 + 32 + lane] = np.float32(((both >> np.int32(8)) & np.int32(15)) | ((s >> np.int32(10)) & np.int32(0x30)))
                pairs[768 + j * 64 + lane] = np.float32(((both >> np.int32(4)) & np.int32(15)) | ((m >> np.int32(2)) & np.int32(0x30)))
                pairs[768 + j * 64 + 32 + lane] = np.float32((both >> np.int32(12)) | ((m >> np.int32(10)) & np.int32(0x30)))
        #omp simd
        for row in range(128):
            work[row] = np.float32(0)
        for j in range(2 * n_chunks):
            #omp simd
            for row in range(64):
                work[row] += pairs[j * 64 + row] * (sums[block * 8 + j] * np.float32(16))
                work[64 + row] += pairs[512 + j * 64 + row] * sums[block * 8 + j]
        for chunk in range(n_chunks):
            low_scale = scales[block * 8 + chunk * 2] * np.float32(16)
            high_scale = scales[block * 8 + chunk * 2 + 1] * np.float32(16)
            up = np.uint16(1 << (6 - 2 * chunk))
            for half in range(n_chunks // 2):
                #omp simd
                for lane in range(32):
                    even_low = np.int16(-1)
                    even_high = np.int16(-1)
                    odd_low = np.int16(-1)
                    odd_high = np.int16(-1)
                    for k in range(16):
                        q = data[block * 5632 + 1536 + chunk * 1024 + half * 512 + k * 32 + lane]
                        h = np.uint16((data[block * 5632 + 512 + half * 512 + k * 32 + lane] ^ np.uint16(0xFFFF)) * up)
                        first = x[block * 256 + chunk * 64 + half * 16 + k]
                        second = x[block * 256 + chunk * 64 + half * 16 + 32 + k]
                        even_low = np.int16(even_low + product(((q << np.uint16(11)) & np.uint16(0x7800)) | ((h << np.uint16(9)) & np.uint16(0x8000)), first))
                        even_high = np.int16(even_high + product(((q << np.uint16(7)) & np.uint16(0x7800)) | ((h << np.uint16(8)) & np.uint16(0x8000)), second))
                        odd_low = np.int16(odd_low + product(((q << np.uint16(3)) & np.uint16(0x7800)) | ((h << np.uint16(1)) & np.uint16(0x8000)), first))
                        odd_high = np.int16(odd_high + product(((q >> np.uint16(1)) & np.uint16(0x7800)) | (h & np.uint16(0x8000)), second))
                    work[lane] += (np.float32(even_low) * (pairs[chunk * 128 + lane] * low_scale)
                                   + np.float32(even_high) * (pairs[chunk * 128 + 64 + lane] * high_scale))
                    work[32 + lane] += (np.float32(odd_low) * (pairs[chunk * 128 + 32 + lane] * low_scale)
                                        + np.float32(odd_high) * (pairs[chunk * 128 + 96 + lane] * high_scale))
        #omp simd
        for row in range(64):
            total[row] += to_half * floats[row] * work[row] - to_half * floats[64 + row] * work[64 + row]


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 176 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
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
                add_group(data[g], x[token], scales[token], sums[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2], n_blocks, scratch.shape[2] // 256)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
