"""Blocks whose elements are points of a grid, eight (IQ3: four) at a time, as in code_blocks.py.

grid: int8[points * 8] or [points * 4]; signs: float32[256 * 8], 1 or -1 for each bit of each byte.
"""

import numpy as np

from .code_blocks import half_at, half_value, word_at


def put_eight(grid, point, step, signs, minus, values, first):
    """step times the coordinates of a point, with a minus for each bit set of the byte."""
    #omp simd
    for i in range(8):
        values[first + i] = step * np.float32(grid[point * 8 + i]) * signs[minus * 8 + i]


def put_four(grid, point, step, signs, first_sign, values, first):
    #omp simd
    for i in range(4):
        values[first + i] = step * np.float32(grid[point * 4 + i]) * signs[first_sign + i]


def put_shifted(grid, point, step, shift, values, first):
    #omp simd
    for i in range(8):
        values[first + i] = step * (np.float32(grid[point * 8 + i]) + shift)


def even_signs(number):
    """A byte of signs out of seven: the eighth makes the number of minuses even."""
    folded = number ^ (number >> 4)
    folded ^= folded >> 2
    folded ^= folded >> 1
    return number | ((folded & 1) << 7)


def decode_iq2_xxs(data, at, values, grid, signs, bits, floats):
    d = half_at(data, at, bits, floats)
    for part in range(8):
        word = int(word_at(data, at + 6 + part * 8))
        step = d * (np.float32(0.5) + np.float32(word >> 28)) * np.float32(0.25)
        for j in range(4):
            minus = even_signs((word >> (7 * j)) & 127)
            put_eight(grid, int(data[at + 2 + part * 8 + j]), step, signs, minus, values, part * 32 + j * 8)
    return d


def decode_iq2_xs(data, at, values, grid, signs, bits, floats):
    d = half_at(data, at, bits, floats)
    for part in range(16):
        scale = (int(data[at + 66 + part // 2]) >> (4 * (part & 1))) & 15
        step = d * (np.float32(0.5) + np.float32(scale)) * np.float32(0.25)
        for j in range(2):
            low = int(data[at + 2 + part * 4 + 2 * j])
            high = int(data[at + 3 + part * 4 + 2 * j])
            minus = even_signs(high >> 1)
            put_eight(grid, low | ((high & 1) << 8), step, signs, minus, values, part * 16 + j * 8)
    return d


def decode_iq2_s(data, at, values, grid, signs, bits, floats):
    d = half_at(data, at, bits, floats)
    for part in range(16):
        scale = (int(data[at + 74 + part // 2]) >> (4 * (part & 1))) & 15
        upper = int(data[at + 66 + part // 2]) >> (4 * (part & 1))
        step = d * (np.float32(0.5) + np.float32(scale)) * np.float32(0.25)
        for j in range(2):
            point = int(data[at + 2 + part * 2 + j]) | (((upper >> (2 * j)) & 3) << 8)
            put_eight(grid, point, step, signs, int(data[at + 34 + part * 2 + j]), values, part * 16 + j * 8)
    return d


def decode_iq3_xxs(data, at, values, grid, signs, bits, floats):
    d = half_at(data, at, bits, floats)
    for part in range(8):
        word = int(word_at(data, at + 66 + part * 4))
        step = d * (np.float32(0.5) + np.float32(word >> 28)) * np.float32(0.5)
        for j in range(4):
            minus = even_signs((word >> (7 * j)) & 127) * 8
            put_four(grid, int(data[at + 2 + part * 8 + 2 * j]), step, signs, minus, values, part * 32 + j * 8)
            put_four(grid, int(data[at + 3 + part * 8 + 2 * j]), step, signs, minus + 4, values, part * 32 + j * 8 + 4)
    return d


def decode_iq3_s(data, at, values, grid, signs, bits, floats):
    d = half_at(data, at, bits, floats)
    for part in range(8):
        scale = (int(data[at + 106 + part // 2]) >> (4 * (part & 1))) & 15
        upper = int(data[at + 66 + part]) << 8
        step = d * np.float32(2 * scale + 1)
        for j in range(4):
            minus = int(data[at + 74 + part * 4 + j]) * 8
            first = int(data[at + 2 + part * 8 + 2 * j]) | ((upper >> (2 * j)) & 256)
            second = int(data[at + 3 + part * 8 + 2 * j]) | ((upper >> (2 * j + 1)) & 256)
            put_four(grid, first, step, signs, minus, values, part * 32 + j * 8)
            put_four(grid, second, step, signs, minus + 4, values, part * 32 + j * 8 + 4)
    return d


def decode_iq1_s(data, at, values, grid, bits, floats):
    d = half_at(data, at, bits, floats)
    for part in range(8):
        word = int(data[at + 34 + 2 * part]) | (int(data[at + 35 + 2 * part]) << 8)
        step = d * np.float32(2 * ((word >> 12) & 7) + 1)
        shift = np.float32(-0.125) if word >> 15 else np.float32(0.125)
        for j in range(4):
            point = int(data[at + 2 + part * 4 + j]) | (((word >> (3 * j)) & 7) << 8)
            put_shifted(grid, point, step, shift, values, part * 32 + j * 8)
    return d


def decode_iq1_m(data, at, values, grid, bits, floats):
    half = np.uint32(0)
    for i in range(4):
        half |= (np.uint32(data[at + 49 + 2 * i]) >> np.uint32(4)) << np.uint32(4 * i)
    d = half_value(half, bits, floats)
    for part in range(16):
        word = int(data[at + 48 + part // 4 * 2]) | (int(data[at + 49 + part // 4 * 2]) << 8)
        step = d * np.float32(2 * ((word >> (3 * (part & 3))) & 7) + 1)
        both = int(data[at + 32 + part])
        for j in range(2):
            upper = (both >> (4 * j)) & 15
            shift = np.float32(-0.125) if upper >> 3 else np.float32(0.125)
            point = int(data[at + part * 2 + j]) | ((upper & 7) << 8)
            put_shifted(grid, point, step, shift, values, part * 16 + j * 8)
    return d
