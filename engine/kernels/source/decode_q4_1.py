"""Panels of Q4_1; the format is told in matvec_q4_1.py."""

import numpy as np

from .fixed import even_half, odd_half


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks):
    to_half = np.float32(2.0**112)
    to_scale = np.float32(8 * 2.0**112)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 640 + lane]
            high = data[block * 640 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 640 + 64 + lane]
            high_m = data[block * 640 + 96 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        #omp simd
        for lane in range(32):
            scales[block * 64 + lane] = floats[lane] * to_scale
            scales[block * 64 + 32 + lane] = floats[32 + lane] * to_scale
            offsets[block * 64 + lane] = floats[lane] * to_scale + floats[64 + lane] * to_half
            offsets[block * 64 + 32 + lane] = floats[32 + lane] * to_scale + floats[96 + lane] * to_half
        for k in range(16):
            #omp simd
            for lane in range(32):
                q = data[block * 640 + 128 + k * 32 + lane] ^ np.uint16(0x8888)
                panel[block * 2048 + k * 32 + lane] = np.int16(q << np.uint16(12))
                panel[block * 2048 + 512 + k * 32 + lane] = np.int16((q << np.uint16(8)) & np.uint16(0xF000))
                panel[block * 2048 + 1024 + k * 32 + lane] = np.int16((q << np.uint16(4)) & np.uint16(0xF000))
                panel[block * 2048 + 1024 + 512 + k * 32 + lane] = np.int16(q & np.uint16(0xF000))


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 20 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 640
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks)
