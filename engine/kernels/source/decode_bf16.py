"""Panels of bfloat16 weights."""

import numpy as np


def decode_row(row, bits, floats, out):
    #omp simd
    for lane in range(32):
        bits[lane] = np.int32(np.uint32(row[lane]) << np.uint32(16))
    #omp simd
    for lane in range(32):
        out[lane] = floats[lane]


# pythran export decode(uint16[:,:] order(C), float32[:,:,:,:] order(C), int32[:,:] order(C), float32[:,:,:] order(C), int,
#                       int)
def decode(data, panels, bits, scratch, first_group, threads):
    """data: uint16[all groups, cols * 64]; panels: float32[groups, col blocks, 2, 64 * 32], overwritten with the groups from
    first_group on.  Scratch: bits int32[threads, 64]; scratch is not used.
    """
    n_groups = panels.shape[0]
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for col in range(data.shape[1] // 64):
                for half in range(panels.shape[2]):
                    decode_row(data[first_group + g, col * 64 + half * 32:], bits[part], floats[part],
                               panels[g, col // 64, half, col % 64 * 32:])
