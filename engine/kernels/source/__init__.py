"""Kernels in the Python that Pythran compiles.  See docs/kernels.md; import them through engine.kernels."""
