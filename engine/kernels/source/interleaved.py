"""Steps shared by the kernels that read interleaved rows: 64 rows side by side are the fast axis.

A float16 is read in two steps: its bits go to an int32 array whose float32 view is the value times 2**-112,
which is exact for zeros, denormals and normals alike.  Infinities and NaN read as finite numbers; `pack_weight`
refuses them.

Functions take slices that begin where they read, so that every index is a sum of loop variables: an index that
might be negative, as Pythran sees it, costs a test per element and all vectorisation.
"""

import numpy as np


def half_bits(data, bits):
    """float16 of 64 rows, low bytes first, high bytes 64 further, to float32 bits."""
    for row in range(64):
        half = np.int32(data[row]) | (np.int32(data[64 + row]) << np.int32(8))
        bits[row] = np.int32(np.uint32(half & np.int32(0x8000)) << np.uint32(16)) | ((half & np.int32(0x7FFF)) << np.int32(13))


def half_scales(data, bits, floats, scales):
    """The same, on to float32[64]; floats is the view of bits."""
    half_bits(data, bits)
    to_half = np.float32(2.0**112)
    for row in range(64):
        scales[row] = floats[row] * to_half


def block_sums(x, sums, block_size, n_blocks):
    """Sums of x over each block; what a block's minimum or offset is multiplied with."""
    for block in range(n_blocks):
        total = np.float32(0)
        for k in range(block * block_size, (block + 1) * block_size):
            total += x[k]
        sums[block] = total


def clear_rows(total):
    zero = np.float32(0)
    for row in range(64):
        total[row] = zero


def store_rows(total, y, first):
    """64 results to y[first:], leaving out the rows that only pad the last group."""
    for row in range(min(64, y.shape[0] - first)):
        y[first + row] = total[row]
