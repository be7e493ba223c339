"""Panels of Q4_1; the format is told in matvec_q4_1.py."""

import numpy as np

from .interleaved import half_scales


def decode_row(q, d, m, low, high):
    #omp simd
    for lane in range(32):
        low[lane] = np.float32(q[lane] & np.uint8(15)) * d[lane] + m[lane]
        high[lane] = np.float32(q[lane] >> np.uint8(4)) * d[lane] + m[lane]


def decode_block(block, panel, start, bits, floats, d, m, unused):
    half_scales(block, bits, floats, d)
    half_scales(block[128:], bits, floats, m)
    for half in range(panel.shape[0]):
        lanes = half * 32
        for k in range(d.shape[0] // 64):
            decode_row(block[(4 + k) * 64 + lanes:], d[lanes:], m[lanes:], panel[half, start + k * 32:],
                       panel[half, start + (16 + k) * 32:])


# pythran export decode(uint8[:,:] order(C), float32[:,:,:,:] order(C), int32[:,:] order(C), float32[:,:,:] order(C), int,
#                       int)
def decode(data, panels, bits, scratch, first_group, threads):
    """data: uint8[all groups, blocks * 20 * 64]; panels: float32[groups, col blocks, 2, 64 * 32], overwritten with the
    groups from first_group on: rows are 32 lanes of two halves.  Scratch: bits int32[threads, 64], scratch
    float32[threads, 3, 1024].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 1280
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for block in range(n_blocks):
                decode_block(data[first_group + g, block * 1280:], panels[g, block // 2], block % 2 * 1024, bits[part],
                             floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2])
