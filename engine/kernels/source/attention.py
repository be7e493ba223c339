"""Attention over a KV cache with the online softmax of Milakov and Gimelshein 2018.

One piece of work is one KV head and a block of queries.  Tiles of 64 positions are decoded from float16 once and
used by every query head that shares the KV head and every query of the block; a row is one (query, query head).
Nothing as long as the context is ever held.  Both products are those of `panel`: 64 numbers of a head against
2 x 32 positions, and 64 positions against 32 numbers of a head.
"""

import numpy as np

from .exponential import exponentials
from .panel import multiply_6, multiply_14


def multiply_tile(w, x, y, tile):
    if tile == 14:
        multiply_14(w, x, y)
    else:
        multiply_6(w, x, y)


def clear(values):
    for i in range(values.shape[0]):
        values[i] = np.float32(0)


def widen(halves, out, count, bits, floats):
    """count float16 bits to float32; infinities and NaN stay what they are, so that damage shows."""
    to_half = np.float32(2.0**112)
    #omp simd
    for i in range(count):
        half = np.int32(halves[i])
        # 0x8000 where the exponent is all ones, times 0xFF00: the exponent of a float32 infinity.
        top = (((half & np.int32(0x7C00)) + np.int32(0x400)) & np.int32(0x8000)) * np.int32(0xFF00)
        sign = np.int32(np.uint32(half & np.int32(0x8000)) << np.uint32(16))
        bits[i] = sign | top | ((half & np.int32(0x7FFF)) << np.int32(13))
    #omp simd
    for i in range(count):
        out[i] = floats[i] * to_half


def decode_keys(keys, panel, bits, floats):
    """float16 bits [head_size, 64] of one tile to [head blocks, 2, 64 * 32]; what lies beyond the head stays zero."""
    for i in range(keys.shape[0]):
        for half in range(panel.shape[1]):
            widen(keys[i, half * 32:], panel[i // 64, half, i % 64 * 32:], 32, bits, floats)


def decode_values(values, n_slots, panel, bits, floats):
    """float16 bits [slots, head_size] to [parts of 32, 64 * 32]; positions not asked for become zero."""
    head_size = values.shape[1]
    for i in range(panel.shape[0]):
        width = min(32, head_size - i * 32)
        for position in range(n_slots):
            widen(values[position, i * 32:], panel[i, position * 32:], width, bits, floats)
        clear(panel[i, n_slots * 32:])


def pack_queries(q, first, n_rows, group, head, head_size, scale, packed, tile):
    """Rows of q, multiplied by scale, as [row tile, head blocks, 64 * tile]; zeros after the last row."""
    n_tiles = (n_rows + tile - 1) // tile
    for row in range(n_tiles * tile):
        query = first + row // group
        column = (head * group + row - row // group * group) * head_size
        for i in range(head_size):
            value = q[query, column + i] * scale if row < n_rows else np.float32(0)
            packed[row // tile, i // 64, i % 64 * tile + row % tile] = value


def cap_scores(line, cap, bits, powers):
    for lane in range(line.shape[0]):
        line[lane] *= np.float32(2) / cap
    exponentials(line, 64, bits, powers)
    for lane in range(line.shape[0]):
        line[lane] = cap - (np.float32(2) * cap) / (np.float32(1) + line[lane])


def softmax_step(line, low, high, gathered, column, peaks, sums, row, bits, powers):
    """line[low:high] become exp(score - peak), the rest zero; where the peak rises, the sums and the outputs gathered
    so far, of this row's column in each part, are brought to the new one."""
    peak = peaks[row]
    for lane in range(low, high):
        peak = max(peak, line[lane])
    if peak > peaks[row]:
        factor = np.float32(0)
        if sums[row] > np.float32(0):
            factor = np.float32(np.exp(np.float64(peaks[row] - peak)))
        sums[row] *= factor
        for part in range(gathered.shape[0]):
            for lane in range(32):
                gathered[part, column + lane] *= factor
        peaks[row] = peak
    for lane in range(line.shape[0]):
        line[lane] -= peak
    exponentials(line, 64, bits, powers)
    for lane in range(low):
        line[lane] = np.float32(0)
    for lane in range(high, 64):
        line[lane] = np.float32(0)
    total = np.float32(0)
    for lane in range(low, high):
        total += line[lane]
    sums[row] += total


def score_rows(positions, first, block, n_rows, row_tile, group, window, cap, tile, scores, line, weights, gathered,
               peaks, sums, bits, floats):
    """Scores [2, tile * 32] of one tile of rows and positions to softmax weights [64 * tile]."""
    for j in range(tile):
        row = row_tile * tile + j
        low = 0
        high = 0
        if row < n_rows:
            position = positions[first + row // group]
            if window > 0:
                low = max(0, position - window + 1 - block * 64)
            high = min(64, position + 1 - block * 64)
        if low < high:
            for lane in range(32):
                line[lane] = scores[0, j * 32 + lane]
                line[32 + lane] = scores[1, j * 32 + lane]
            if cap > np.float32(0):
                cap_scores(line, cap, bits, floats)
            softmax_step(line, low, high, gathered, j * 32, peaks, sums, row, bits, floats)
        else:
            clear(line)
        for lane in range(line.shape[0]):
            weights[lane * tile + j] = line[lane]


def attend(q, out, positions, keys, values, first, last, head, group, window, scale, cap, tile, key_panel, value_panel,
           packed, scores, line, weights, gathered, peaks, sums, bits, floats):
    """Queries first to last, all of one sequence, against one KV head: keys [tiles, head_size, 64], values
    [capacity, head_size]."""
    head_size = values.shape[1]
    n_tiles_of_ring = keys.shape[0]
    n_rows = (last - first) * group
    n_row_tiles = (n_rows + tile - 1) // tile
    pack_queries(q, first, n_rows, group, head, head_size, scale, packed, tile)
    for row_tile in range(n_row_tiles):
        for part in range(gathered.shape[1]):
            clear(gathered[row_tile, part])
    for row in range(n_row_tiles * tile):
        peaks[row] = np.float32(-3.0e38)
        sums[row] = np.float32(0)

    oldest = positions[first]
    newest = positions[first]
    for query in range(first, last):
        oldest = min(oldest, positions[query])
        newest = max(newest, positions[query])
    oldest = max(0, oldest - window + 1) if window > 0 else 0
    for block in range(oldest // 64, newest // 64 + 1):
        # Not %: Pythran 0.19 miscompiles a loop variable's modulo where the loop does not start at zero.
        in_ring = block - block // n_tiles_of_ring * n_tiles_of_ring
        decode_keys(keys[in_ring], key_panel, bits, floats)
        decode_values(values[in_ring * 64:], min(64, newest + 1 - block * 64), value_panel, bits, floats)
        for row_tile in range(n_row_tiles):
            for half in range(scores.shape[0]):
                clear(scores[half])
                for part in range(key_panel.shape[0]):
                    multiply_tile(key_panel[part, half], packed[row_tile, part], scores[half], tile)
            score_rows(positions, first, block, n_rows, row_tile, group, window, cap, tile, scores, line, weights,
                       gathered[row_tile], peaks, sums, bits, floats)
            for part in range(value_panel.shape[0]):
                multiply_tile(value_panel[part], weights, gathered[row_tile, part], tile)

    for row in range(n_rows):
        column = (head * group + row - row // group * group) * head_size
        factor = np.float32(1) / sums[row]
        for i in range(head_size):
            out[first + row // group, column + i] = gathered[row // tile, i // 32, row % tile * 32 + i % 32] * factor


# pythran export attention(float32[:,:] order(C), float32[:,:] order(C), int32[:] order(C), int32[:] order(C),
#                          uint16[:,:,:,:,:] order(C), uint16[:,:,:,:] order(C), float32[:,:,:,:] order(C),
#                          float32[:,:,:] order(C), float32[:,:,:,:] order(C), float32[:,:,:] order(C),
#                          float32[:,:] order(C), float32[:,:,:,:] order(C), float32[:,:,:] order(C),
#                          int32[:,:] order(C), float32[:,:] order(C), int, int, float32, float32, int, int)
def attention(q, out, positions, sequences, keys, values, key_panels, value_panels, packed, scores, weights,
              gathered, statistics, bits, floats, block_size, window, scale, cap, tile, threads):
    """q, out: float32[n, heads * head_size]; positions, sequences: int32[n];
    keys: uint16[sequences, kv_heads, capacity / 64, head_size, 64];
    values: uint16[sequences, kv_heads, capacity, head_size];
    block_size: queries of one piece of work; window: positions seen, 0 for all; cap: 0 for none.

    Scratch, one row per thread, with head blocks = head_size / 64 and parts = head_size / 32, both rounded up, and
    row tiles = block_size * heads / kv_heads / tile rounded up; zeros at the start: key_panels [head blocks, 2,
    64 * 32], value_panels [parts, 64 * 32], packed [row tiles, head blocks, 64 * tile], scores [2, tile * 32],
    weights [64 * tile], gathered [row tiles, parts, tile * 32], statistics [3, at least 64 and the rows of all row
    tiles], bits [64] and floats, its float32 view.
    """
    n = q.shape[0]
    n_kv_heads = values.shape[1]
    group = q.shape[1] // values.shape[3] // n_kv_heads
    n_blocks = (n + block_size - 1) // block_size
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for work in range(part, n_blocks * n_kv_heads, threads):
            block = work // n_kv_heads
            head = work - block * n_kv_heads
            first = block * block_size
            end = min(n, first + block_size)
            while first < end:
                sequence = sequences[first]
                last = first + 1
                while last < end and sequences[last] == sequence:
                    last += 1
                attend(q, out, positions, keys[sequence, head], values[sequence, head], first, last, head, group,
                       window, scale, cap, tile, key_panels[part], value_panels[part], packed[part], scores[part],
                       statistics[part, 2, :64], weights[part], gathered[part], statistics[part, 0],
                       statistics[part, 1], bits[part], floats[part])
                first = last
