"""The scales and minima of Q4_K and Q5_K: eight pairs of 6-bit numbers in 12 bytes."""

import numpy as np


def sub_block_scales(data, start, d, d_min, scales, minima):
    """float32[8 * 64] each, of 64 rows: d * scale and dmin * minimum; d and d_min as `half_bits` leaves them.

    Bytes 0 to 3 hold scales 0 to 3 and bytes 4 to 7 minima 0 to 3 in their low six bits; nibbles of bytes 8 to 11 are the
    low bits of scale and minimum 4 to 7, whose upper two bits top the bytes before.
    """
    to_half = np.float32(2.0**112)
    for first in range(start, start + 4 * 64, 64):
        j = (first - start) // 64
        for row in range(d.shape[0]):
            s = data[first + row]
            m = data[first + 4 * 64 + row]
            both = data[first + 8 * 64 + row]
            factor = d[row] * to_half
            factor_min = d_min[row] * to_half
            scales[j * 64 + row] = factor * np.float32(s & np.uint8(63))
            minima[j * 64 + row] = factor_min * np.float32(m & np.uint8(63))
            scales[(4 + j) * 64 + row] = factor * np.float32((both & np.uint8(15)) | ((s & np.uint8(192)) >> np.uint8(2)))
            minima[(4 + j) * 64 + row] = factor_min * np.float32((both >> np.uint8(4)) | ((m & np.uint8(192)) >> np.uint8(2)))
