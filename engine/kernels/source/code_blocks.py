"""Blocks whose elements are small numbers times a scale, one block of a row at a time (decode_rows.py).

Each function reads a block that begins at data[at] and writes its elements to values.  It gives back the scale, or what
shows that it is infinite or no number.  The formats are told in engine/quantisation, file by file.  bits and floats are
the same memory.
"""

import numpy as np


def half_at(data, at, bits, floats):
    """The float16 at data[at] as float32, infinity and NaN included."""
    half = np.uint32(data[at]) | (np.uint32(data[at + 1]) << np.uint32(8))
    return half_value(half, bits, floats)


def half_value(half, bits, floats):
    special = np.uint32(0x7F800000) if (half & np.uint32(0x7C00)) == np.uint32(0x7C00) else np.uint32(0)
    bits[0] = ((half & np.uint32(0x8000)) << np.uint32(16)) | ((half & np.uint32(0x7FFF)) << np.uint32(13)) | special
    return floats[0] * np.float32(2.0**112)


def word_at(data, at):
    """The 32-bit word at data[at]."""
    low = np.uint32(data[at]) | (np.uint32(data[at + 1]) << np.uint32(8))
    return low | (np.uint32(data[at + 2]) << np.uint32(16)) | (np.uint32(data[at + 3]) << np.uint32(24))


def pick_nibbles(data, at, count, table, step, values, first):
    """Elements first to first + 2 count: the low nibbles of count bytes, then the high ones, choose from the table."""
    for k in range(count):
        q = int(data[at + k])
        values[first + k] = step * np.float32(table[q & 15])
        values[first + count + k] = step * np.float32(table[q >> 4])


def decode_mxfp4(data, at, values, table, bits, floats):
    e = np.uint32(data[at])
    bits[0] = np.uint32(0x200000) << e if e < np.uint32(2) else (e - np.uint32(1)) << np.uint32(23)
    step = floats[0]
    pick_nibbles(data, at + 1, 16, table, step, values, 0)
    bits[0] = np.uint32(0x7FC00000) if e == np.uint32(255) else np.uint32(0)
    return floats[0]


def decode_nvfp4(data, at, values, table, bits, floats):
    for part in range(4):
        s = np.uint32(data[at + part])
        e = (s >> np.uint32(3)) & np.uint32(15)
        mantissa = np.float32((s & np.uint32(7)) + (np.uint32(0) if e == np.uint32(0) else np.uint32(8)))
        bits[0] = ((np.uint32(1) if e == np.uint32(0) else e) + np.uint32(116)) << np.uint32(23)
        step = np.float32(0) if s == np.uint32(0x7F) else mantissa * floats[0]
        pick_nibbles(data, at + 4 + part * 8, 8, table, step, values, part * 16)
    return np.float32(0)


def decode_q1_0(data, at, values, bits, floats):
    d = half_at(data, at, bits, floats)
    for k in range(16):
        byte = int(data[at + 2 + k])
        for i in range(8):
            values[k * 8 + i] = d * (np.float32((byte >> i) & 1) * np.float32(2) - np.float32(1))
    return d


def decode_bytes(data, at, values, d, count):
    """d times count signed bytes."""
    for k in range(count):
        values[k] = d * np.float32(np.int8(data[at + k]))
    return d


def decode_tq1_0(data, at, values, bits, floats):
    d = half_at(data, at + 52, bits, floats)
    for k in range(32):
        base_3(data[at + k], values, k, 32, 5, d)
    for k in range(16):
        base_3(data[at + 32 + k], values, 160 + k, 16, 5, d)
    for k in range(4):
        base_3(data[at + 48 + k], values, 240 + k, 4, 4, d)
    return d


def base_3(byte, values, first, step, count, d):
    """The digits of a byte, which is a fraction of 256."""
    fraction = np.uint32(byte)
    for i in range(count):
        digit = (fraction * np.uint32(3)) >> np.uint32(8)
        values[first + i * step] = d * (np.float32(digit) - np.float32(1))
        fraction = (fraction * np.uint32(3)) & np.uint32(255)


def decode_tq2_0(data, at, values, bits, floats):
    d = half_at(data, at + 64, bits, floats)
    for half in range(2):
        for k in range(32):
            q = int(data[at + half * 32 + k])
            for i in range(4):
                values[half * 128 + i * 32 + k] = d * (np.float32((q >> (2 * i)) & 3) - np.float32(1))
    return d
