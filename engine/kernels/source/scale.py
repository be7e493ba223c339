"""Product with one number."""


# pythran export scale(float32[:] order(C), float32[:] order(C), float32)
def scale(x, out, factor):
    """float32[size] each, may be the same array."""
    for i in range(x.shape[0]):
        out[i] = x[i] * factor
