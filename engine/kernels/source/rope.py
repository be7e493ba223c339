"""Rotary position embedding (Su et al. 2021) from a table of cosines and sines.

Dimension pair i of a head is (2i, 2i + 1) in the interleaved form and (i, i + dims / 2) in the halves form;
dimensions from 2 * pairs on are copied.
"""


def rotate(x, out, start, cos, sin, pairs, first_step, second_offset):
    for i in range(pairs):
        a = x[start + i * first_step]
        b = x[start + i * first_step + second_offset]
        out[start + i * first_step] = a * cos[i] - b * sin[i]
        out[start + i * first_step + second_offset] = a * sin[i] + b * cos[i]


# pythran export rope(float32[:,:] order(C), float32[:,:] order(C), int32[:] order(C), float32[:,:] order(C),
#                     float32[:,:] order(C), int, bool, int)
def rope(x, out, positions, cos, sin, head_size, interleaved, threads):
    """x, out: float32[n, heads * head_size], may be the same array; cos, sin: float32[positions, pairs]."""
    n = x.shape[0]
    pairs = cos.shape[1]
    #omp parallel for schedule(static) num_threads(threads) if(n > 15)
    for token in range(n):
        position = positions[token]
        for start in range(0, x.shape[1], head_size):
            if interleaved:
                rotate(x[token], out[token], start, cos[position], sin[position], pairs, 2, 1)
            else:
                rotate(x[token], out[token], start, cos[position], sin[position], pairs, 1, pairs)
            for i in range(start + 2 * pairs, start + head_size):
                out[token, i] = x[token, i]
