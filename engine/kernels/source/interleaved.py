"""Steps shared by the kernels that read interleaved rows: 64 rows side by side are the fast axis.

A float16 is read in two steps: its bits go to an int32 array whose float32 view is the value times 2**-112,
which is exact for zeros, denormals and normals alike.  Infinities and NaN read as finite numbers; `pack_weight`
refuses them.
"""

import numpy as np


def half_bits(data, start, bits):
    """float16 of 64 rows, low bytes at data[start:], high bytes 64 further, to float32 bits."""
    for row in range(64):
        half = np.int32(data[start + row]) | (np.int32(data[start + 64 + row]) << np.int32(8))
        bits[row] = ((half & np.int32(0x8000)) << np.int32(16)) | ((half & np.int32(0x7FFF)) << np.int32(13))


def block_sums(x, sums, block_size, n_blocks):
    """Sums of x over each block; what a block's minimum or offset is multiplied with."""
    for block in range(n_blocks):
        total = np.float32(0)
        for k in range(block * block_size, (block + 1) * block_size):
            total += x[k]
        sums[block] = total


def store_rows(total, y, first):
    """64 results to y[first:], leaving out the rows that only pad the last group."""
    for row in range(min(64, y.shape[0] - first)):
        y[first + row] = total[row]
