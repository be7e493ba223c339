"""Elementwise sum."""


# pythran export add(float32[:] order(C), float32[:] order(C), float32[:] order(C))
def add(a, b, out):
    """float32[size] each; out may be a or b."""
    for i in range(a.shape[0]):
        out[i] = a[i] + b[i]
