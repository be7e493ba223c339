"""The scales and minima of Q4_K and Q5_K: eight pairs of 6-bit numbers in 12 bytes."""

import numpy as np

from .interleaved import half_scales


def two_pairs(packed, d, d_min, scales, minima):
    """Pairs j and j + 4.  Bytes 0 to 3 hold scales 0 to 3 and bytes 4 to 7 minima 0 to 3 in their low six bits;
    nibbles of bytes 8 to 11 are the low bits of scale and minimum 4 to 7, whose upper two bits top those bytes."""
    #omp simd
    for row in range(64):
        s = packed[row]
        m = packed[256 + row]
        both = packed[512 + row]
        scales[row] = d[row] * np.float32(s & np.uint8(63))
        minima[row] = d_min[row] * np.float32(m & np.uint8(63))
        scales[256 + row] = d[row] * np.float32((both & np.uint8(15)) | ((s & np.uint8(192)) >> np.uint8(2)))
        minima[256 + row] = d_min[row] * np.float32((both >> np.uint8(4)) | ((m & np.uint8(192)) >> np.uint8(2)))


def sub_block_scales(block, bits, floats, work, scales, minima):
    """float32[8 * 64] each, of 64 rows: d * scale and dmin * minimum.  block begins with d, dmin and the 12 bytes;
    work: float32[128]."""
    half_scales(block, bits, floats, work)
    half_scales(block[128:], bits, floats, work[64:])
    for j in range(scales.shape[0] // 256):
        two_pairs(block[(4 + j) * 64:], work, work[64:], scales[j * 64:], minima[j * 64:])
