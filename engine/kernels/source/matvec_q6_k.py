"""y = W x for Q6_K: blocks of 256 as 128 bytes of nibbles, 64 bytes of upper bit pairs, 16 signed scales, float16 d.

Value (q - 32) * scale * d, one scale for 16 values.  Packed (packing.py), a block is d, then for 16 columns of each four 32
apart their four scales and 16 times three words, in which fuse_q6_k.py has put values together: at the top of 16 bits they
are (q - 32) * 2**10.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def low_byte(word):
    """The signed low byte of a word, which is of an even row."""
    return np.float32(np.int16(word << np.uint16(8)) >> np.int16(8))


def high_byte(word):
    return np.float32(np.int16(word) >> np.int16(8))


def scaled(first, second, first_scale, second_scale, first_x, second_x):
    return np.float32(first) * (first_scale * first_x) + np.float32(second) * (second_scale * second_x)


def add_group(data, x, scales, bits, floats, total, work, n_blocks, n_pieces):
    to_half = np.float32(2.0**112)
    top = np.uint16(0xFC00)
    clear_rows(total)
    for block in range(n_blocks):
        clear_rows(work)
        for piece in range(n_pieces):
            scale_a = scales[block * 8 + piece // 2 * 4] * np.float32(32)
            scale_b = scales[block * 8 + piece // 2 * 4 + 1] * np.float32(32)
            #omp simd
            for lane in range(32):
                even_a = np.int16(-1)
                odd_a = np.int16(-1)
                even_b = np.int16(-1)
                odd_b = np.int16(-1)
                for k in range(16):
                    p = data[block * 6720 + piece * 1664 + 192 + k * 96 + lane]
                    q = data[block * 6720 + piece * 1664 + 224 + k * 96 + lane]
                    xa = x[block * 256 + piece // 2 * 128 + piece % 2 * 16 + k]
                    xb = x[block * 256 + piece // 2 * 128 + piece % 2 * 16 + 32 + k]
                    even_a = np.int16(even_a + product(p & top, xa))
                    odd_a = np.int16(odd_a + product((p << np.uint16(6)) & top, xa))
                    even_b = np.int16(even_b + product(q & top, xb))
                    odd_b = np.int16(odd_b + product((q << np.uint16(6)) & top, xb))
                sa = data[block * 6720 + piece * 1664 + 64 + lane]
                sb = data[block * 6720 + piece * 1664 + 96 + lane]
                work[lane] += scaled(even_a, even_b, low_byte(sa), low_byte(sb), scale_a, scale_b)
                work[32 + lane] += scaled(odd_a, odd_b, high_byte(sa), high_byte(sb), scale_a, scale_b)
        # a loop of its own: g++ prefetches for no loop with more than 200 loads and stores
        for piece in range(n_pieces):
            scale_c = scales[block * 8 + piece // 2 * 4 + 2] * np.float32(32)
            scale_d = scales[block * 8 + piece // 2 * 4 + 3] * np.float32(32)
            #omp simd
            for lane in range(32):
                even_c = np.int16(-1)
                odd_c = np.int16(-1)
                even_d = np.int16(-1)
                odd_d = np.int16(-1)
                for k in range(16):
                    p = data[block * 6720 + piece * 1664 + 192 + k * 96 + lane]
                    q = data[block * 6720 + piece * 1664 + 224 + k * 96 + lane]
                    r = data[block * 6720 + piece * 1664 + 256 + k * 96 + lane]
                    xc = x[block * 256 + piece // 2 * 128 + piece % 2 * 16 + 64 + k]
                    xd = x[block * 256 + piece // 2 * 128 + piece % 2 * 16 + 96 + k]
                    even_c = np.int16(even_c + product((p << np.uint16(12)) | ((r << np.uint16(8)) & np.uint16(0x0C00)), xc))
                    odd_c = np.int16(odd_c + product((q << np.uint16(12)) | ((r << np.uint16(10)) & np.uint16(0x0C00)), xc))
                    even_d = np.int16(even_d + product(r & top, xd))
                    odd_d = np.int16(odd_d + product((r << np.uint16(6)) & top, xd))
                sc = data[block * 6720 + piece * 1664 + 128 + lane]
                sd = data[block * 6720 + piece * 1664 + 160 + lane]
                work[lane] += scaled(even_c, even_d, low_byte(sc), low_byte(sd), scale_c, scale_d)
                work[32 + lane] += scaled(odd_c, odd_d, high_byte(sc), high_byte(sd), scale_c, scale_d)
        #omp simd
        for lane in range(32):
            low = data[block * 6720 + lane]
            high = data[block * 6720 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        #omp simd
        for row in range(64):
            total[row] += to_half * floats[row] * work[row]


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 210 * 32], two bytes in one; x: int16[n, blocks * 256], scales and sums: float32[n,
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
                add_group(data[g], x[token], scales[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1], n_blocks, scratch.shape[2] // 256)
                store_rows(scratch[part, 0, :32], scratch[part, 0, 32:64], y[token, g])
