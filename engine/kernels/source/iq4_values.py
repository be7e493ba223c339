"""The 16 values of IQ4_NL and IQ4_XS, computed: there is no table that a compiler would look numbers up in, 32 at a time.

The values rise like a polynomial of degree 4, which is never off by more than 0.44; rounding makes them exact.  It is
evaluated by Horner's rule in 16-bit fixed point, with 8 bits behind the point, from t = (q - 8) * 2**12, which is a
nibble with its top bit turned at the top of 16 bits.  tests/engine/kernels/test_decoded.py compares all 16.

Where g++ knows that a sum fits 16 bits it leaves out the narrowing, and with it the 16-bit product (see docs/kernels.md).
So one of the summands is a zero that it does not know.
"""

import numpy as np

from .fixed import product


def hidden_zero(n):
    """0 for every number of blocks that there can be."""
    return np.int16(n >> 40)


def iq4_value(nibble, zero):
    """256 times the value of a nibble, which is given as t."""
    t = np.int16(nibble)
    value = np.int16(product(np.int16(1663) + zero, t) + (np.int16(10727) + zero))
    value = np.int16(product(value, t) + (np.int16(-275) + zero))
    value = np.int16(product(value, t) + np.int16(23428))
    return np.int16((product(value, t) + np.int16(495)) & np.int16(-256))
