"""Panels of Q6_K; the format is told in matvec_q6_k.py."""

import numpy as np

from .fixed import even_half, odd_half


def store(panel, first, lane, even, odd, scales):
    """The six upper bits of an even and of an odd row, times their scales, the low and the high byte, and times 7."""
    panel[first + lane] = np.int16((even >> np.int16(10)) * np.int16((np.int16(scales << np.uint16(8)) >> np.int16(8)) * np.int16(7)))
    panel[first + 1024 + lane] = np.int16((odd >> np.int16(10)) * np.int16((np.int16(scales) >> np.int16(8)) * np.int16(7)))


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks, n_twos):
    """32 columns have two scales, and panels one: (q - 32) * scale * 7 fills 16 bits, and the panel's scale is of d."""
    to_scale = np.float32(2.0**112 * 32768 / 7)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 6720 + lane]
            high = data[block * 6720 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for j in range(4 * n_twos):
            #omp simd
            for lane in range(32):
                scales[block * 512 + j * 64 + lane] = floats[lane] * to_scale
                offsets[block * 512 + j * 64 + lane] = np.float32(0)
                offsets[block * 512 + j * 64 + 32 + lane] = np.float32(0)
                scales[block * 512 + j * 64 + 32 + lane] = floats[32 + lane] * to_scale
        for piece in range(2 * n_twos):
            for k in range(16):
                #omp simd
                for lane in range(32):
                    p = data[block * 6720 + piece * 1664 + 192 + k * 96 + lane]
                    q = data[block * 6720 + piece * 1664 + 224 + k * 96 + lane]
                    r = data[block * 6720 + piece * 1664 + 256 + k * 96 + lane]
                    even_c = np.int16((p << np.uint16(12)) | ((r << np.uint16(8)) & np.uint16(0x0C00)))
                    odd_c = np.int16((q << np.uint16(12)) | ((r << np.uint16(10)) & np.uint16(0x0C00)))
                    store(panel, block * 16384 + piece // 2 * 8192 + piece % 2 * 512 + k * 32, lane,
                          np.int16(p), np.int16(p << np.uint16(6)), data[block * 6720 + piece * 1664 + 64 + lane])
                    store(panel, block * 16384 + piece // 2 * 8192 + piece % 2 * 512 + 2048 + k * 32, lane,
                          np.int16(q), np.int16(q << np.uint16(6)), data[block * 6720 + piece * 1664 + 96 + lane])
                    store(panel, block * 16384 + piece // 2 * 8192 + piece % 2 * 512 + 4096 + k * 32, lane,
                          even_c, odd_c, data[block * 6720 + piece * 1664 + 128 + lane])
                    store(panel, block * 16384 + piece // 2 * 8192 + piece % 2 * 512 + 6144 + k * 32, lane,
                          np.int16(r), np.int16(r << np.uint16(6)), data[block * 6720 + piece * 1664 + 160 + lane])


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 210 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset, and offset is 0.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 6720
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks, bits.shape[1] // 64)
