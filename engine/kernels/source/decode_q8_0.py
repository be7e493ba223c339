"""Panels of Q8_0; the format is told in matvec_q8_0.py."""

import numpy as np

from .interleaved import half_scales


def decode_row(q, d, out):
    #omp simd
    for lane in range(32):
        out[lane] = np.float32(np.int8(q[lane])) * d[lane]


def decode_block(block, panel, start, bits, floats, d, unused, unused_too):
    half_scales(block, bits, floats, d)
    for half in range(panel.shape[0]):
        lanes = half * 32
        for k in range(d.shape[0] // 32):
            decode_row(block[(2 + k) * 64 + lanes:], d[lanes:], panel[half, start + k * 32:])


# pythran export decode(uint8[:,:] order(C), float32[:,:,:,:] order(C), int32[:,:] order(C), float32[:,:,:] order(C), int,
#                       int)
def decode(data, panels, bits, scratch, first_group, threads):
    """data: uint8[all groups, blocks * 34 * 64]; panels: float32[groups, col blocks, 2, 64 * 32], overwritten with the
    groups from first_group on: rows are 32 lanes of two halves.  Scratch: bits int32[threads, 64], scratch
    float32[threads, 3, 1024].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 2176
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for block in range(n_blocks):
                decode_block(data[first_group + g, block * 2176:], panels[g, block // 2], block % 2 * 1024, bits[part],
                             floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2])
