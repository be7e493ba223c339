"""16-bit fixed point, in which quantised weights and rounded activations are multiplied.

One vector instruction multiplies twice as many 16-bit numbers as float32 ones and keeps the rounded upper half of each
product, and the bits of a quantised weight need no conversion: they are moved to the top of 16 bits.  Sums of 32 products
are 16-bit numbers too.  They wrap, which is harmless, since the last one fits: 32 weights have a Euclidean norm of
2**15 * sqrt(32) at most, 32 activations are scaled to one of 5,780; by Cauchy and Schwarz a sum of products over 2**15 is
at most 32,697, and roundings add less than 35.  A result is off by about 1e-3 of a typical one; rounding the activations to
8 bits would cost five times as much.

The kernels read interleaved rows as words of two bytes, so that 32 lanes hold 64 rows: the low byte is of an even row, the
high byte of the odd one after it.  Every index is a sum of loop variables and numbers, and arrays are parts of others by
whole indices only: a slice counts references, which costs as much as a block, and an index that might be negative costs a
test.  Integers are spelt with their types: a plain 8 is a 64-bit number, and a loop with one is half or a quarter as fast.
"""

import numpy as np


def product(weight, x):
    """weight * x / 2**15, rounded; one instruction on x86-64 (pmulhrsw), which g++ knows in this spelling."""
    return np.int16((((np.int32(np.int16(weight)) * np.int32(x)) >> 14) + 1) >> 1)


def even_half(low, high):
    """float16 of the even row, from words of low and of high bytes, to float32 bits of the number times 2**-112."""
    half = np.int16((low & np.uint16(0xFF)) | (high << np.uint16(8)))
    return (np.uint32(np.int32(half)) << np.uint32(13)) & np.uint32(0x8FFFE000)


def odd_half(low, high):
    half = np.int16((low >> np.uint16(8)) | (high & np.uint16(0xFF00)))
    return (np.uint32(np.int32(half)) << np.uint32(13)) & np.uint32(0x8FFFE000)


def clear_rows(total):
    #omp simd
    for row in range(64):
        total[row] = np.float32(0)


def store_rows(even, odd, y):
    """32 even and 32 odd rows to their places in y[64]."""
    #omp simd
    for lane in range(32):
        y[2 * lane] = even[lane]
        y[2 * lane + 1] = odd[lane]
