"""y = W x for Q8_0: blocks of 32 as float16 d and 32 signed bytes; value q * d.

A byte at the top of 16 bits is q * 2**8.
"""

import numpy as np

from .fixed import clear_rows, even_half, odd_half, product, store_rows


def add_group(data, x, scales, bits, floats, total, n_blocks):
    to_half = np.float32(2.0**112)
    clear_rows(total)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 1088 + lane]
            high = data[block * 1088 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        scale = scales[block] * np.float32(128)
        #omp simd
        for lane in range(32):
            even = np.int16(0)
            odd = np.int16(0)
            for k in range(32):
                q = data[block * 1088 + 64 + k * 32 + lane]
                even = np.int16(even + product(q << np.uint16(8), x[block * 32 + k]))
                odd = np.int16(odd + product(q & np.uint16(0xFF00), x[block * 32 + k]))
            total[lane] += np.float32(even) * (floats[lane] * to_half * scale)
            total[32 + lane] += np.float32(odd) * (floats[32 + lane] * to_half * scale)


# pythran export matvec(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       float32[:,:,:] order(C), uint32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, scales, sums, y, bits, scratch, threads):
    """data: uint16[groups, blocks * 34 * 32], two bytes in one; x: int16[n, blocks * 32], scales and sums: float32[n,
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
