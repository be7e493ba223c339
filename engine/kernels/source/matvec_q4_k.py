"""y = W x for Q4_K: blocks of 256 as float16 d and dmin, 12 bytes of 6-bit scales and minima, 128 bytes of nibbles.

Sub-block j of 32 has the value q * (d * scale_j) - dmin * minimum_j; sub-blocks 2c and 2c + 1 are the low and high nibbles
of chunk c.  q is taken as (q - 8) + 8, the first as in matvec_q4_0.py, the second times the sum of x.  The 12 bytes:
bytes 0 to 3 hold scales 0 to 3 and bytes 4 to 7 minima 0 to 3 in their low six bits; nibbles of bytes 8 to 11 are the
low bits of scale and minimum 4 to 7, whose upper two bits top those bytes.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, sums, bits, floats, total, work, pairs, products, n_blocks, n_chunks):
    """pairs: 512 scales, even and odd rows of each sub-block, then 512 minima.  products: 32 even rows of the low and
    of the high nibbles, then odd ones, of each half of a chunk.  work: 128 sums, then the 16 bytes before the nibbles.

    These bytes lie two by two before the 16 bytes of nibbles of each half (packing.py), or no prefetch would reach
    them; so products are scaled only when all halves are through.
    """
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        for half in range(2 * n_chunks):
            ties = np.int16(-1 - half % 2)
            #omp simd
            for lane in range(32):
                work[128 + half * 64 + lane] = np.float32(data[block * 4608 + half * 576 + lane])
                work[128 + half * 64 + 32 + lane] = np.float32(data[block * 4608 + half * 576 + 32 + lane])
                even_low = ties
                even_high = ties
                odd_low = ties
                odd_high = ties
                for k in range(16):
                    q = data[block * 4608 + half * 576 + 64 + k * 32 + lane] ^ np.uint16(0x8888)
                    first = x[block * 256 + half // 2 * 64 + half % 2 * 16 + k]
                    second = x[block * 256 + half // 2 * 64 + half % 2 * 16 + 32 + k]
                    even_low = np.int16(even_low + product(q << np.uint16(12), first))
                    even_high = np.int16(even_high + product((q << np.uint16(8)) & np.uint16(0xF000), second))
                    odd_low = np.int16(odd_low + product((q << np.uint16(4)) & np.uint16(0xF000), first))
                    odd_high = np.int16(odd_high + product(q & np.uint16(0xF000), second))
                products[half * 128 + lane] = np.float32(even_low)
                products[half * 128 + 32 + lane] = np.float32(odd_low)
                products[half * 128 + 64 + lane] = np.float32(even_high)
                products[half * 128 + 96 + lane] = np.float32(odd_high)
        #omp simd
        for lane in range(32):
            low = np.uint16(np.int32(work[128 + lane]))
            high = np.uint16(np.int32(work[160 + lane]))
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = np.uint16(np.int32(work[192 + lane]))
            high_m = np.uint16(np.int32(work[224 + lane]))
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        for j in range(n_chunks):
            #omp simd
            for lane in range(32):
                s = np.int32(work[256 + j * 32 + lane])
                m = np.int32(work[384 + j * 32 + lane])
                both = np.int32(work[512 + j * 32 + lane])
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
            scale = scales[block * 8 + j] * np.float32(8)
            offset = sums[block * 8 + j] * np.float32(8)
            #omp simd
            for row in range(64):
                both_halves = products[j // 2 * 256 + j % 2 * 64 + row] + products[j // 2 * 256 + 128 + j % 2 * 64 + row]
                work[row] += pairs[j * 64 + row] * (both_halves * scale + offset)
                work[64 + row] += pairs[512 + j * 64 + row] * sums[block * 8 + j]
        #omp simd
        for row in range(64):
            total[row] += to_half * floats[row] * work[row] - to_half * floats[64 + row] * work[64 + row]


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 144 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
    cols / 32], as `tokens_to_fixed` leaves them; y: float32[n, groups, 64], overwritten.

    Scratch: bits uint32[threads, 128], scratch float32[threads, 4 or more, 1024 or more].
    """
    n_groups = data.shape[0]
    n_blocks = x.shape[1] // 256
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], scales[token], sums[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2], scratch[part, 3], n_blocks, scratch.shape[2] // 256)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
