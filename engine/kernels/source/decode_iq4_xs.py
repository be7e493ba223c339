"""Panels of IQ4_XS; the format is told in matvec_iq4_xs.py."""

import numpy as np

from .fixed import even_half, odd_half
from .iq4_values import hidden_zero, iq4_value


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks, n_pairs):
    to_scale = np.float32(128 * 2.0**112)
    zero = hidden_zero(n_blocks)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 4352 + lane]
            high = data[block * 4352 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for i in range(n_pairs):
            down = np.int32(4 * (i - i // 2 * 2))
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 4352 + 128 + i * 32 + lane])
                upper = np.int32(data[block * 4352 + 64 + i // 2 * 32 + lane]) >> down
                even = floats[lane] * to_scale
                odd = floats[32 + lane] * to_scale
                scales[block * 512 + i * 128 + lane] = even * np.float32(((s & np.int32(15)) | ((upper << np.int32(4)) & np.int32(0x30))) - np.int32(32))
                scales[block * 512 + i * 128 + 32 + lane] = odd * np.float32((((s >> np.int32(8)) & np.int32(15)) | ((upper >> np.int32(4)) & np.int32(0x30))) - np.int32(32))
                scales[block * 512 + i * 128 + 64 + lane] = even * np.float32((((s >> np.int32(4)) & np.int32(15)) | ((upper << np.int32(2)) & np.int32(0x30))) - np.int32(32))
                scales[block * 512 + i * 128 + 96 + lane] = odd * np.float32(((s >> np.int32(12)) | ((upper >> np.int32(6)) & np.int32(0x30))) - np.int32(32))
        for j in range(2 * n_pairs):
            #omp simd
            for row in range(64):
                offsets[block * 512 + j * 64 + row] = np.float32(0)
            for k in range(16):
                #omp simd
                for lane in range(32):
                    q = data[block * 4352 + 256 + j * 512 + k * 32 + lane] ^ np.uint16(0x8888)
                    panel[block * 16384 + j * 2048 + k * 32 + lane] = iq4_value(q << np.uint16(12), zero)
                    panel[block * 16384 + j * 2048 + 512 + k * 32 + lane] = iq4_value((q << np.uint16(8)) & np.uint16(0xF000), zero)
                    panel[block * 16384 + j * 2048 + 1024 + k * 32 + lane] = iq4_value((q << np.uint16(4)) & np.uint16(0xF000), zero)
                    panel[block * 16384 + j * 2048 + 1024 + 512 + k * 32 + lane] = iq4_value(q & np.uint16(0xF000), zero)


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 136 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset, and offset is 0.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 4352
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks, bits.shape[1] // 32)
