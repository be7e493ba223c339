"""Panels of Q6_K; the format is told in matvec_q6_k.py."""

import numpy as np

from .fixed import even_half, odd_half


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks, n_twos):
    """32 columns have two scales, and panels one: (q - 32) * scale * 7 fills 16 bits, and the panel's scale is of d."""
    to_scale = np.float32(2.0**112 * 32768 / 7)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 6720 + 6656 + lane]
            high = data[block * 6720 + 6688 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for j in range(4 * n_twos):
            #omp simd
            for lane in range(32):
                scales[block * 512 + j * 64 + lane] = floats[lane] * to_scale
                offsets[block * 512 + j * 64 + lane] = np.float32(0)
                offsets[block * 512 + j * 64 + 32 + lane] = np.float32(0)
                scales[block * 512 + j * 64 + 32 + lane] = floats[32 + lane] * to_scale
        for half in range(n_twos):
            for j in range(n_twos):
                up = np.uint16(4 - 3 * j)
                for piece in range(n_twos):
                    for k in range(16):
                        #omp simd
                        for lane in range(32):
                            first = data[block * 6720 + 6144 + half * 256 + j * 64 + piece * 32 + lane]
                            second = data[block * 6720 + 6272 + half * 256 + j * 64 + piece * 32 + lane]
                            q = data[block * 6720 + half * 2048 + j * 1024 + piece * 512 + k * 32 + lane]
                            # bit pairs of both values: of even rows to 2 and 6, of odd rows to 10 and 14
                            h = np.uint16((data[block * 6720 + 4096 + half * 1024 + piece * 512 + k * 32 + lane] ^ np.uint16(0xAAAA)) * up)
                            a = np.int16(((q << np.uint16(10)) & np.uint16(0x3C00)) | ((h << np.uint16(12)) & np.uint16(0xC000))) >> np.int16(10)
                            b = np.int16(((q << np.uint16(6)) & np.uint16(0x3C00)) | ((h << np.uint16(8)) & np.uint16(0xC000))) >> np.int16(10)
                            c = np.int16(((q << np.uint16(2)) & np.uint16(0x3C00)) | ((h << np.uint16(4)) & np.uint16(0xC000))) >> np.int16(10)
                            d = np.int16(((q >> np.uint16(2)) & np.uint16(0x3C00)) | (h & np.uint16(0xC000))) >> np.int16(10)
                            panel[block * 16384 + half * 8192 + j * 2048 + piece * 512 + k * 32 + lane] = np.int16(a * np.int16((np.int16(first << np.uint16(8)) >> np.int16(8)) * np.int16(7)))
                            panel[block * 16384 + half * 8192 + j * 2048 + 4096 + piece * 512 + k * 32 + lane] = np.int16(b * np.int16((np.int16(second << np.uint16(8)) >> np.int16(8)) * np.int16(7)))
                            panel[block * 16384 + half * 8192 + j * 2048 + 1024 + piece * 512 + k * 32 + lane] = np.int16(c * np.int16((np.int16(first) >> np.int16(8)) * np.int16(7)))
                            panel[block * 16384 + half * 8192 + j * 2048 + 4096 + 1024 + piece * 512 + k * 32 + lane] = np.int16(d * np.int16((np.int16(second) >> np.int16(8)) * np.int16(7)))


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
