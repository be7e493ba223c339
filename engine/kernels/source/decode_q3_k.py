"""Panels of Q3_K; the format is told in matvec_q3_k.py."""

import numpy as np

from .fixed import even_half, odd_half


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks, n_twos):
    """32 columns have two scales, and panels one: (q - 4) * (scale - 32) * 255 fills 16 bits, and the panel's scale is of
    d.  The 32 columns number 4 half + 2 pair + j have scales 8 half + 4 pair + 2 j and the next."""
    to_scale = np.float32(2.0**112 * 32768 / 255)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 3520 + 3456 + lane]
            high = data[block * 3520 + 3488 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
        for j in range(4 * n_twos):
            #omp simd
            for lane in range(32):
                scales[block * 512 + j * 64 + lane] = floats[lane] * to_scale
                scales[block * 512 + j * 64 + 32 + lane] = floats[32 + lane] * to_scale
                offsets[block * 512 + j * 64 + lane] = np.float32(0)
                offsets[block * 512 + j * 64 + 32 + lane] = np.float32(0)
        for half in range(n_twos):
            nibble = np.uint16(4 * half)
            for pair in range(n_twos):
                upper = np.uint16(4 * half + 2 * pair)
                for j in range(n_twos):
                    down = np.uint16(4 * pair + 2 * j)
                    third = np.uint16(4 * half + 2 * pair + j)
                    #omp simd
                    for lane in range(32):
                        s = data[block * 3520 + 3072 + pair * 128 + j * 64 + lane] >> nibble
                        t = data[block * 3520 + 3104 + pair * 128 + j * 64 + lane] >> nibble
                        u = data[block * 3520 + 3328 + j * 64 + lane] >> upper
                        v = data[block * 3520 + 3360 + j * 64 + lane] >> upper
                        a = np.int16((np.int16((s & np.uint16(15)) | ((u & np.uint16(3)) << np.uint16(4))) - np.int16(32)) * np.int16(255))
                        b = np.int16((np.int16((t & np.uint16(15)) | ((v & np.uint16(3)) << np.uint16(4))) - np.int16(32)) * np.int16(255))
                        c = np.int16((np.int16(((s >> np.uint16(8)) & np.uint16(15)) | ((u >> np.uint16(4)) & np.uint16(0x30))) - np.int16(32)) * np.int16(255))
                        d = np.int16((np.int16(((t >> np.uint16(8)) & np.uint16(15)) | ((v >> np.uint16(4)) & np.uint16(0x30))) - np.int16(32)) * np.int16(255))
                        for k in range(16):
                            p = data[block * 3520 + 1024 + half * 1024 + k * 32 + lane] >> down
                            q = data[block * 3520 + 1536 + half * 1024 + k * 32 + lane] >> down
                            g = data[block * 3520 + k * 32 + lane] >> third
                            h = data[block * 3520 + 512 + k * 32 + lane] >> third
                            panel[block * 16384 + half * 8192 + pair * 4096 + j * 2048 + k * 32 + lane] = np.int16((np.int16((p & np.uint16(3)) | ((g & np.uint16(1)) << np.uint16(2))) - np.int16(4)) * a)
                            panel[block * 16384 + half * 8192 + pair * 4096 + j * 2048 + 512 + k * 32 + lane] = np.int16((np.int16((q & np.uint16(3)) | ((h & np.uint16(1)) << np.uint16(2))) - np.int16(4)) * b)
                            panel[block * 16384 + half * 8192 + pair * 4096 + j * 2048 + 1024 + k * 32 + lane] = np.int16((np.int16(((p >> np.uint16(8)) & np.uint16(3)) | ((g >> np.uint16(6)) & np.uint16(4))) - np.int16(4)) * c)
                            panel[block * 16384 + half * 8192 + pair * 4096 + j * 2048 + 1536 + k * 32 + lane] = np.int16((np.int16(((q >> np.uint16(8)) & np.uint16(3)) | ((h >> np.uint16(6)) & np.uint16(4))) - np.int16(4)) * d)


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 110 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset, and offset is 0.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 3520
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks, bits.shape[1] // 64)
