"""Panels of Q2_K; the format is told in matvec_q2_k.py.

32 columns have two scales and two minima, and panels one scale: it is chosen so that the largest value that the 32 might
have fills 16 bits.  A panel is then q * a - c, with a and c whole numbers of its unit, rounded.  Until they are known, scales and
offsets hold what they are made of.
"""

import numpy as np

from .fixed import even_half, odd_half


def whole(value):
    """Rounded, of at most 32,767: truncation rounds down once the number is positive."""
    return np.int16(np.int32(value + np.float32(32768.5)) - np.int32(32768))


def decode_group(data, panel, scales, offsets, bits, floats, n_blocks, n_fours):
    to_half = np.float32(2.0**112)
    zero = np.float32(0)
    three = np.float32(3)
    most = np.float32(32764)
    to_scale = np.float32(32768 / 32764)
    for block in range(n_blocks):
        #omp simd
        for lane in range(32):
            low = data[block * 2688 + 2560 + lane]
            high = data[block * 2688 + 2592 + lane]
            bits[lane] = even_half(low, high)
            bits[32 + lane] = odd_half(low, high)
            low_m = data[block * 2688 + 2624 + lane]
            high_m = data[block * 2688 + 2656 + lane]
            bits[64 + lane] = even_half(low_m, high_m)
            bits[96 + lane] = odd_half(low_m, high_m)
        for j in range(2 * n_fours):
            down = np.uint16(2 * (j - j // 4 * 4))
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 2688 + j * 64 + lane])
                t = np.int32(data[block * 2688 + j * 64 + 32 + lane])
                even = np.abs(floats[lane]) * three
                odd = np.abs(floats[32 + lane]) * three
                even_m = np.abs(floats[64 + lane])
                odd_m = np.abs(floats[96 + lane])
                scales[block * 512 + j * 64 + lane] = even * np.float32(s & np.int32(15)) + even_m * np.float32((s >> np.int32(4)) & np.int32(15))
                offsets[block * 512 + j * 64 + lane] = even * np.float32(t & np.int32(15)) + even_m * np.float32((t >> np.int32(4)) & np.int32(15))
                scales[block * 512 + j * 64 + 32 + lane] = odd * np.float32((s >> np.int32(8)) & np.int32(15)) + odd_m * np.float32(s >> np.int32(12))
                offsets[block * 512 + j * 64 + 32 + lane] = odd * np.float32((t >> np.int32(8)) & np.int32(15)) + odd_m * np.float32(t >> np.int32(12))
            #omp simd
            for row in range(64):
                first = scales[block * 512 + j * 64 + row]
                second = offsets[block * 512 + j * 64 + row]
                scales[block * 512 + j * 64 + row] = (first if first > second else second) * to_half
            #omp simd
            for row in range(64):
                largest = scales[block * 512 + j * 64 + row]
                offsets[block * 512 + j * 64 + row] = most / largest if largest > zero else zero
                scales[block * 512 + j * 64 + row] = largest * to_scale
            #omp simd
            for lane in range(32):
                s = np.int32(data[block * 2688 + j * 64 + lane])
                t = np.int32(data[block * 2688 + j * 64 + 32 + lane])
                units = offsets[block * 512 + j * 64 + lane]
                odd_units = offsets[block * 512 + j * 64 + 32 + lane]
                a = whole(np.float32(s & np.int32(15)) * (floats[lane] * to_half * units))
                b = whole(np.float32(t & np.int32(15)) * (floats[lane] * to_half * units))
                c = whole(np.float32((s >> np.int32(4)) & np.int32(15)) * (floats[64 + lane] * to_half * units))
                d = whole(np.float32((t >> np.int32(4)) & np.int32(15)) * (floats[64 + lane] * to_half * units))
                e = whole(np.float32((s >> np.int32(8)) & np.int32(15)) * (floats[32 + lane] * to_half * odd_units))
                f = whole(np.float32((t >> np.int32(8)) & np.int32(15)) * (floats[32 + lane] * to_half * odd_units))
                g = whole(np.float32(s >> np.int32(12)) * (floats[96 + lane] * to_half * odd_units))
                h = whole(np.float32(t >> np.int32(12)) * (floats[96 + lane] * to_half * odd_units))
                for k in range(16):
                    p = data[block * 2688 + 512 + j // 4 * 1024 + k * 32 + lane] >> down
                    q = data[block * 2688 + 1024 + j // 4 * 1024 + k * 32 + lane] >> down
                    panel[block * 16384 + j * 2048 + k * 32 + lane] = np.int16(np.int16(np.int16(p & np.uint16(3)) * a) - c)
                    panel[block * 16384 + j * 2048 + 512 + k * 32 + lane] = np.int16(np.int16(np.int16(q & np.uint16(3)) * b) - d)
                    panel[block * 16384 + j * 2048 + 1024 + k * 32 + lane] = np.int16(np.int16(np.int16((p >> np.uint16(8)) & np.uint16(3)) * e) - g)
                    panel[block * 16384 + j * 2048 + 1536 + k * 32 + lane] = np.int16(np.int16(np.int16((q >> np.uint16(8)) & np.uint16(3)) * f) - h)
            #omp simd
            for row in range(64):
                offsets[block * 512 + j * 64 + row] = zero


# pythran export decode(uint16[:,:] order(C), int16[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                       uint32[:,:] order(C), int, int)
def decode(data, panels, scales, offsets, bits, first_group, threads):
    """data: uint16[all groups, blocks * 84 * 32], two bytes in one; panels: int16[groups, col blocks * 2 * 32 * 32] and
    scales: float32[groups, col blocks * 2 * 32], overwritten with the groups from first_group on, even rows and odd
    rows: value = panel * scale / 2**15 + offset, and offset is 0.  Scratch: bits uint32[threads, 128].
    """
    n_groups = panels.shape[0]
    n_blocks = data.shape[1] // 2688
    floats = bits.view(np.float32)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            decode_group(data[first_group + g], panels[g], scales[g], offsets[g], bits[part], floats[part], n_blocks, bits.shape[1] // 32)
