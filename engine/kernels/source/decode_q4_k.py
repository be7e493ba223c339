"""Panels of Q4_K; the format is told in matvec_q4_k.py."""

import numpy as np

from .k_scales import sub_block_scales


def decode_row(q, scales, minima, low, high):
    #omp simd
    for lane in range(32):
        low[lane] = np.float32(q[lane] & np.uint8(15)) * scales[lane] - minima[lane]
        high[lane] = np.float32(q[lane] >> np.uint8(4)) * scales[64 + lane] - minima[64 + lane]


def decode_chunk(quants, panel, scales, minima):
    for half in range(panel.shape[0]):
        lanes = half * 32
        for k in range(panel.shape[1] // 64):
            decode_row(quants[k * 64 + lanes:], scales[lanes:], minima[lanes:], panel[half, k * 32:],
                       panel[half, (32 + k) * 32:])


def decode_block(block, panel, first, bits, floats, work, scales, minima):
    sub_block_scales(block, bits, floats, work, scales, minima)
    for chunk in range(scales.shape[0] // 256):
        decode_chunk(block[(16 + chunk * 32) * 64:], panel[first + chunk], scales[chunk * 128:], minima[chunk * 128:])


# pythran export decode(uint8[:,:] order(C), float32[:,:,:,:] order(C), int32[:,:] order(C), float32[:,:,:] order(C), int,
#                       int)
def decode(data, panels, bits, scratch, first_group, threads):
    """data: uint8[all groups, blocks * 144 * 64]; panels: float32[groups, col blocks, 2, 64 * 32], overwritten with the
    groups from first_group on: rows are 32 lanes of two halves.  Scratch: bits int32[threads, 64], scratch
    float32[threads, 3, 1024].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 9216
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for block in range(n_blocks):
                decode_block(data[first_group + g, block * 9216:], panels[g], block * 4, bits[part],
                             floats[part], scratch[part, 0], scratch[part, 1], scratch[part, 2])
