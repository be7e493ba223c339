"""Panels of IQ4_NL; the format is told in matvec_iq4_nl.py."""

import numpy as np

from .fixed import even_half, odd_half
from .iq4_values import hidden_zero, iq4_value


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks):
    to_scale = np.float32(128 * 2.0**112)
    zero = hidden_zero(n_blocks)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 576 + lane]
            high = data[block * 576 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        #omp simd
        for lane in range(32):
            scales[block * 64 + lane] = floats[lane] * to_scale
            offsets[block * 64 + lane] = np.float32(0)
            offsets[block * 64 + 32 + lane] = np.float32(0)
            scales[block * 64 + 32 + lane] = floats[32 + lane] * to_scale
        for k in range(16):
            #omp simd
            for lane in range(32):
                q = data[block * 576 + 64 + k * 32 + lane] ^ np.uint16(0x8888)
                panel[block * 2048 + k * 32 + lane] = iq4_value(q << np.uint16(12), zero)
                panel[block * 2048 + 512 + k * 32 + lane] = iq4_value((q << np.uint16(8)) & np.uint16(0xF000), zero)
                panel[block * 2048 + 1024 + k * 32 + lane] = iq4_value((q << np.uint16(4)) & np.uint16(0xF000), zero)
                panel[block * 2048 + 1024 + 512 + k * 32 + lane] = iq4_value(q & np.uint16(0xF000), zero)


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 18 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset, and offset is 0.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 576
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks)
