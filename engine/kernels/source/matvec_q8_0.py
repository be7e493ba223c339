"""y = W x for Q8_0: blocks of 32 as float16 d and 32 signed bytes; value q * d."""

import numpy as np

from .interleaved import clear_rows, half_scales, store_rows


def add_block(block, x, bits, floats, total, d, more):
    half_scales(block, bits, floats, d)
    quants = block[128:]
    for row in range(64):
        even = np.float32(0)
        odd = np.float32(0)
        for k in range(16):
            even += np.float32(np.int8(quants[k * 64 + row])) * x[k]
            odd += np.float32(np.int8(quants[(k + 16) * 64 + row])) * x[16 + k]
        total[row] += (even + odd) * d[row]


def add_group(data, x, bits, floats, total, work, more, n_blocks):
    clear_rows(total)
    for block in range(n_blocks):
        add_block(data[block * 2176:], x[block * 32:], bits, floats, total, work, more)


# pythran export matvec(uint8[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       int32[:,:] order(C), float32[:,:,:] order(C), int)
def matvec(data, x, y, sums, bits, scratch, threads):
    """data: uint8[groups, blocks * 34 * 64]; x: float32[n, blocks * 32]; y: float32[n, rows], overwritten.

    Scratch: sums float32[n, any], bits int32[threads, 64], scratch float32[threads, 3, 1024].
    """
    n_blocks = x.shape[1] // 32
    n_groups = data.shape[0]
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for token in range(x.shape[0]):
                add_group(data[g], x[token], bits[part], floats[part], scratch[part, 0], scratch[part, 1],
                          scratch[part, 2], n_blocks)
                store_rows(scratch[part, 0], y[token], g * 64)
