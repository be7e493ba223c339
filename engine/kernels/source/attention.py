"""Attention over a KV cache with the online softmax of Milakov and Gimelshein 2018.

One piece of work is one KV head and a block of queries.  Tiles of 64 positions are decoded from float16 once and
used by every query head that shares the KV head and every query of the block; a row is one (query, query head).
Nothing as long as the context is ever held.
"""

import numpy as np

from .exponential import exponentials
from .panel import multiply_tile


def decode_run(halves, out, start, bits, floats):
    """One run of float16 bits to float32 at out[start:]."""
    size = halves.shape[0]
    for i in range(size):
        half = np.int32(halves[i])
        bits[i] = ((half & np.int32(0x8000)) << np.int32(16)) | ((half & np.int32(0x7FFF)) << np.int32(13))
    for i in range(size):
        out[start + i] = floats[i] * np.float32(2.0**112)


def decode_keys(keys, out, bits, floats):
    """float16 bits [head_size, 64] of one tile to float32[head_size * 64]."""
    for i in range(keys.shape[0]):
        decode_run(keys[i], out, i * 64, bits, floats)


def decode_values(values, slot, n_slots, out, stride, bits, floats):
    """float16 bits [slots, head_size] from slot on to float32[64, stride]; positions not asked for become zero."""
    for position in range(n_slots):
        decode_run(values[slot + position], out, position * stride, bits, floats)
    for i in range(n_slots * stride, 64 * stride):
        out[i] = np.float32(0)


def pack_queries(q, first, n_rows, group, head, head_size, scale, packed, tile):
    """Rows of q as [row tile][head_size][tile], multiplied by scale; zeros after the last row."""
    n_tiles = (n_rows + tile - 1) // tile
    for row in range(n_tiles * tile):
        row_tile = row // tile
        start = row_tile * tile * head_size + row - row_tile * tile
        query = first + row // group
        column = (head * group + row - row // group * group) * head_size
        for i in range(head_size):
            packed[start + i * tile] = q[query, column + i] * scale if row < n_rows else np.float32(0)


def cap_scores(scores, start, cap, bits, powers):
    for i in range(start, start + 64):
        scores[i] *= np.float32(2) / cap
    exponentials(scores, start, 64, bits, powers)
    for i in range(start, start + 64):
        scores[i] = cap - (np.float32(2) * cap) / (np.float32(1) + scores[i])


def softmax_step(scores, start, low, high, out, out_start, out_stride, peaks, sums, row, bits, powers):
    """scores[start:start + 64] become exp(score - peak) for lanes low to high and zero elsewhere; where the peak
    rises, the sums and outputs gathered so far are brought to the new one."""
    if low >= high:
        for i in range(start, start + 64):
            scores[i] = np.float32(0)
    else:
        peak = peaks[row]
        for lane in range(low, high):
            peak = max(peak, scores[start + lane])
        if peak > peaks[row]:
            factor = np.float32(0)
            if sums[row] > np.float32(0):
                factor = np.float32(np.exp(np.float64(peaks[row] - peak)))
            sums[row] *= factor
            for i in range(out_stride):
                out[out_start + i] *= factor
            peaks[row] = peak
        for i in range(start, start + 64):
            scores[i] -= peak
        exponentials(scores, start, 64, bits, powers)
        for lane in range(0, low):
            scores[start + lane] = np.float32(0)
        for lane in range(high, 64):
            scores[start + lane] = np.float32(0)
        total = np.float32(0)
        for lane in range(low, high):
            total += scores[start + lane]
        sums[row] += total


def attend(q, out, positions, keys, values, first, last, head, group, window, scale, cap, tile,
           key_panel, value_panel, packed, scores, weights, gathered, peaks, sums, bits, floats):
    """Queries first to last, all of one sequence, against one KV head: keys [tiles, head_size, 64], values
    [capacity, head_size]."""
    head_size = values.shape[1]
    stride = (head_size + 31) // 32 * 32
    n_tiles_of_ring = keys.shape[0]
    n_rows = (last - first) * group
    n_row_tiles = (n_rows + tile - 1) // tile
    pack_queries(q, first, n_rows, group, head, head_size, scale, packed, tile)
    for row in range(n_row_tiles * tile):
        peaks[row] = np.float32(-3.0e38)
        sums[row] = np.float32(0)
        for i in range(stride):
            gathered[row * stride + i] = np.float32(0)

    oldest = positions[first]
    newest = positions[first]
    for query in range(first, last):
        oldest = min(oldest, positions[query])
        newest = max(newest, positions[query])
    if window > 0:
        oldest = max(0, oldest - window + 1)
    else:
        oldest = 0
    for block in range(oldest // 64, newest // 64 + 1):
        # Not %: Pythran 0.19 miscompiles a loop variable's modulo where the loop does not start at zero.
        in_ring = block - block // n_tiles_of_ring * n_tiles_of_ring
        decode_keys(keys[in_ring], key_panel, bits, floats)
        decode_values(values, in_ring * 64, min(64, newest + 1 - block * 64), value_panel, stride, bits, floats)
        for row_tile in range(n_row_tiles):
            for i in range(tile * 64):
                scores[i] = np.float32(0)
            start = row_tile * tile * head_size
            multiply_tile(key_panel, 0, 64, packed, start, scores, 0, 64, head_size, tile)
            multiply_tile(key_panel, 32, 64, packed, start, scores, 32, 64, head_size, tile)
            for j in range(tile):
                row = row_tile * tile + j
                low = 64
                high = 0
                if row < n_rows:
                    position = positions[first + row // group]
                    low = 0
                    if window > 0:
                        low = max(0, position - window + 1 - block * 64)
                    high = min(64, position + 1 - block * 64)
                    if cap > np.float32(0):
                        cap_scores(scores, j * 64, cap, bits, floats)
                softmax_step(scores, j * 64, low, high, gathered, row * stride, stride, peaks, sums, row, bits, floats)
                for lane in range(j * 64, j * 64 + 64):
                    weights[(lane - j * 64) * tile + j] = scores[lane]
            for i in range(0, stride, 32):
                multiply_tile(value_panel, i, stride, weights, 0, gathered, row_tile * tile * stride + i, stride, 64, tile)

    for row in range(n_rows):
        column = (head * group + row - row // group * group) * head_size
        factor = np.float32(1) / sums[row]
        for i in range(head_size):
            out[first + row // group, column + i] = gathered[row * stride + i] * factor


# pythran export attention(float32[:,:] order(C), float32[:,:] order(C), int32[:] order(C), int32[:] order(C),
#                          uint16[:,:,:,:,:] order(C), uint16[:,:,:,:] order(C), float32[:,:] order(C),
#                          float32[:,:] order(C), float32[:,:] order(C), float32[:,:] order(C),
#                          float32[:,:] order(C), float32[:,:] order(C), float32[:,:,:] order(C),
#                          int32[:,:] order(C), float32[:,:] order(C), int, int, float32, float32, int, int)
def attention(q, out, positions, sequences, keys, values, key_panels, value_panels, packed, scores, weights,
              gathered, statistics, bits, floats, block_size, window, scale, cap, tile, threads):
    """q, out: float32[n, heads * head_size]; positions, sequences: int32[n];
    keys: uint16[sequences, kv_heads, capacity / 64, head_size, 64];
    values: uint16[sequences, kv_heads, capacity, head_size];
    block_size: queries of one piece of work; window: positions seen, 0 for all; cap: 0 for none.

    Scratch, one row per thread, with stride = head_size rounded up to 32 and rows = block_size * heads / kv_heads
    rounded up to the tile: key_panels [head_size * 64], value_panels [64 * stride] (zeros at the start), packed
    [rows * head_size], scores and weights [64 * tile], gathered [rows * stride], statistics [2, rows],
    bits [max(64, head_size)] and floats, its float32 view.
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
                       weights[part], gathered[part], statistics[part, 0], statistics[part, 1], bits[part],
                       floats[part])
                first = last
