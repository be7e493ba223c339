"""Panels of float32 out of rows as the file holds them: all types that have no product of their own.

One kernel for all: `kind` chooses the format, in the order of `KINDS` in linear_decoded.py.  It goes block by block
along a row and then down the rows, element by element; nothing here is vectorised.
"""

import numpy as np

from .code_blocks import (
    decode_bytes,
    decode_mxfp4,
    decode_nvfp4,
    decode_q1_0,
    decode_tq1_0,
    decode_tq2_0,
    half_at,
    word_at,
)
from .point_blocks import (
    decode_iq1_m,
    decode_iq1_s,
    decode_iq2_s,
    decode_iq2_xs,
    decode_iq2_xxs,
    decode_iq3_s,
    decode_iq3_xxs,
)


def decode_numbers(data, at, size, count, is_float, values, wide, doubles):
    """count little-endian whole numbers, or floats, of size bytes."""
    up = np.uint64(64 - 8 * size)
    for k in range(count):
        word = np.uint64(0)
        for i in range(size):
            word |= np.uint64(data[at + k * size + i]) << np.uint64(8 * i)
        if is_float:
            wide[0] = word
            values[k] = np.float32(doubles[0])
        else:
            values[k] = np.float32(np.int64(word << up) >> np.int64(up))


def decode_block(kind, data, at, size, count, values, grid, signs, bits, floats, wide, doubles):
    """A block of a row; its scale."""
    if kind == 0:
        return decode_mxfp4(data, at, values, grid, bits, floats)
    elif kind == 1:
        return decode_iq2_xxs(data, at, values, grid, signs, bits, floats)
    elif kind == 2:
        return decode_iq2_xs(data, at, values, grid, signs, bits, floats)
    elif kind == 3:
        return decode_iq2_s(data, at, values, grid, signs, bits, floats)
    elif kind == 4:
        return decode_iq3_xxs(data, at, values, grid, signs, bits, floats)
    elif kind == 5:
        return decode_iq3_s(data, at, values, grid, signs, bits, floats)
    elif kind == 6:
        return decode_iq1_s(data, at, values, grid, bits, floats)
    elif kind == 7:
        return decode_iq1_m(data, at, values, grid, bits, floats)
    elif kind == 8:
        return decode_tq1_0(data, at, values, bits, floats)
    elif kind == 9:
        return decode_tq2_0(data, at, values, bits, floats)
    elif kind == 10:
        return decode_nvfp4(data, at, values, grid, bits, floats)
    elif kind == 11:
        return decode_q1_0(data, at, values, bits, floats)
    elif kind == 12:
        return decode_bytes(data, at + 4, values, half_at(data, at, bits, floats), 32)
    elif kind == 13:
        bits[0] = word_at(data, at)
        return decode_bytes(data, at + 4, values, floats[0] * np.float32(1), 256)
    else:
        decode_numbers(data, at, size, count, kind == 15, values, wide, doubles)
        return np.float32(0)


def store_values(values, count, first_col, panel, lane):
    """Elements of a row to its lane of a group's panel: 64 columns at a time, twice 32 rows."""
    for start in range(0, count, 32):
        place = (first_col + start) // 64 * 4096 + ((first_col + start) & 63) * 32 + lane
        for k in range(min(32, count - start)):
            panel[place + k * 32] = values[start + k]


# pythran export decode(uint8[:], float32[:,:] order(C), int, int, int, int, int, int8[:], float32[:],
#                       float32[:,:,:] order(C), uint32[:,:] order(C), uint64[:,:] order(C), int64[:,:] order(C), int, int)
def decode(data, panels, kind, width, cols, block_size, block_bytes, grid, signs, scratch, bits, wide, found, first_group, threads):
    """data: uint8[rows * width], width bytes in a row; panels: float32[groups, col blocks * 2 * 64 * 32], of which the columns up to cols of
    rows that there are are overwritten, from first_group on.

    kind, grid, signs: see above and the helpers; blocks of plain numbers (kinds 14 and 15) may have any size.  found:
    int64[threads, 2], of which the first is set to 1 where a scale is infinite or no number.
    Scratch: float32[threads, 3, 1024], uint32[threads, 128], and the same memory as uint64.
    """
    n_groups = panels.shape[0]
    n_rows = data.shape[0] // width
    floats = bits.view(np.float32)
    doubles = wide.view(np.float64)
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        wrong = 0
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for row in range(min(64, n_rows - (first_group + g) * 64)):
                for block in range((cols + block_size - 1) // block_size):
                    first_col = block * block_size
                    count = min(block_size, cols - first_col)
                    scale = decode_block(kind, data, ((first_group + g) * 64 + row) * width + block * block_bytes,
                                         block_bytes // block_size, count, scratch[part, 0], grid, signs, bits[part],
                                         floats[part], wide[part], doubles[part])
                    wrong |= 0 if scale - scale == np.float32(0) else 1
                    store_values(scratch[part, 0], count, first_col, panels[g], row // 32 * 2048 + (row & 31))
        found[part, 0] |= wrong
