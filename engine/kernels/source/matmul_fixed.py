"""y = W x for many tokens in 16-bit fixed point, from panels of W and tiles of x that carry a scale per 32 columns."""

import numpy as np

from .fixed import store_rows
from .fixed_panel import multiply_6, multiply_12


def clear(values):
    for i in range(values.shape[0]):
        values[i] = np.float32(0)


def multiply_group(panel, scales, offsets, packed, token_scales, token_sums, totals, tile, ties):
    """panel: [col blocks, 2, 32 * 32]; scales, offsets: [col blocks, 64]; totals: [tiles, 2, tile * 32].  Sixteen blocks
    of columns stay in the cache while all tokens pass."""
    n_blocks = panel.shape[0]
    for first in range(0, n_blocks, 16):
        for index in range(packed.shape[0]):
            for block in range(first, min(first + 16, n_blocks)):
                if tile == 12:
                    multiply_12(panel[block, 0], panel[block, 1], scales[block], offsets[block], packed[index, block],
                                token_scales[index, block], token_sums[index, block], totals[index, 0], totals[index, 1],
                                ties)
                else:
                    multiply_6(panel[block, 0], panel[block, 1], scales[block], offsets[block], packed[index, block],
                               token_scales[index, block], token_sums[index, block], totals[index, 0], totals[index, 1],
                               ties)


# pythran export matmul_fixed(int16[:,:,:,:] order(C), float32[:,:,:] order(C), float32[:,:,:] order(C),
#                             int16[:,:,:] order(C), float32[:,:,:] order(C), float32[:,:,:] order(C),
#                             float32[:,:,:] order(C), float32[:,:,:,:] order(C), float32[:,:,:,:,:] order(C), int, int,
#                             int, int)
def matmul_fixed(panels, scales, offsets, packed, token_scales, token_sums, y, totals, lines, first_group, ties, tile,
                 threads):
    """panels: int16[groups, col blocks, 2, 32 * 32], scales and offsets: float32[groups, col blocks, 64], of the groups from
    first_group on, as decode kernels leave them: even rows, then odd rows;
    packed: int16[tiles, col blocks, 32 * tile], token_scales and token_sums: float32[tiles, col blocks, tile], as
    `tokens_to_fixed` leaves them; y: float32[n, all groups, 64], of which these groups are overwritten; tile: 12 or 6;
    ties: see fixed.py.  Scratch: totals float32[threads, tiles, 2, tile * 32], and the same memory as lines
    float32[threads, tiles, 2, tile, 32].
    """
    n_groups = panels.shape[0]
    n = y.shape[0]
    #omp parallel for schedule(static) num_threads(threads)
    for part in range(threads):
        for g in range(part * n_groups // threads, (part + 1) * n_groups // threads):
            for index in range(packed.shape[0]):
                for half in range(totals.shape[2]):
                    clear(totals[part, index, half])
            multiply_group(panels[g], scales[g], offsets[g], packed, token_scales, token_sums, totals[part], tile,
                           np.int16(ties))
            for token in range(n):
                store_rows(lines[part, token // tile, 0, token % tile], lines[part, token // tile, 1, token % tile],
                           y[token, first_group + g])
