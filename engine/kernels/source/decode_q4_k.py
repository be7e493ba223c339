"""Panels of Q4_K; the format is told in matvec_q4_k.py."""

import numpy as np

from .fixed import even_half, odd_half


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks, n_pairs):
    to_half = np.float32(2.0**112)
    to_scale = np.float32(8 * 2.0**112)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            # two bytes of the header lie before each 16 bytes of nibbles (packing.py)
            low = data[block * 4608 + lane]
            high = data[block * 4608 + 32 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 4608 + 576 + lane]
            high_m = data[block * 4608 + 608 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        for j in range(n_pairs):
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 4608 + (4 + j) // 2 * 576 + j % 2 * 32 + lane])
                m = np.int32(data[block * 4608 + (8 + j) // 2 * 576 + j % 2 * 32 + lane])
                both = np.int32(data[block * 4608 + (12 + j) // 2 * 576 + j % 2 * 32 + lane])
                even = floats[lane] * to_scale
                odd = floats[32 + lane] * to_scale
                even_m = floats[64 + lane] * to_half
                odd_m = floats[96 + lane] * to_half
                a = even * np.float32(s & np.int32(63))
                b = odd * np.float32((s >> np.int32(8)) & np.int32(63))
                c = even * np.float32((both & np.int32(15)) | ((s >> np.int32(2)) & np.int32(0x30)))
                d = odd * np.float32(((both >> np.int32(8)) & np.int32(15)) | ((s >> np.int32(10)) & np.int32(0x30)))
                scales[block * 512 + j * 64 + lane] = a
                scales[block * 512 + j * 64 + 32 + lane] = b
                scales[block * 512 + 256 + j * 64 + lane] = c
                scales[block * 512 + 256 + j * 64 + 32 + lane] = d
                offsets[block * 512 + j * 64 + lane] = a - even_m * np.float32(m & np.int32(63))
                offsets[block * 512 + j * 64 + 32 + lane] = b - odd_m * np.float32((m >> np.int32(8)) & np.int32(63))
                offsets[block * 512 + 256 + j * 64 + lane] = c - even_m * np.float32(((both >> np.int32(4)) & np.int32(15)) | ((m >> np.int32(2)) & np.int32(0x30)))
                offsets[block * 512 + 256 + j * 64 + 32 + lane] = d - odd_m * np.float32((both >> np.int32(12)) | ((m >> np.int32(10)) & np.int32(0x30)))
        for chunk in range(n_pairs):
            for k in range(32):
                #omp simd
                for lane in range(32):
                    q = data[block * 4608 + chunk * 1152 + k // 16 * 64 + 64 + k * 32 + lane] ^ np.uint16(0x8888)
                    panel[block * 16384 + chunk * 4096 + k * 32 + lane] = np.int16(q << np.uint16(12))
                    panel[block * 16384 + chunk * 4096 + 2048 + k * 32 + lane] = np.int16((q << np.uint16(8)) & np.uint16(0xF000))
                    panel[block * 16384 + chunk * 4096 + 1024 + k * 32 + lane] = np.int16((q << np.uint16(4)) & np.uint16(0xF000))
                    panel[block * 16384 + chunk * 4096 + 2048 + 1024 + k * 32 + lane] = np.int16(q & np.uint16(0xF000))


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 144 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 4608
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks, bits.shape[1] // 32)
