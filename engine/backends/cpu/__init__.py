"""The backend that is always there, built on the Pythran kernels."""

from engine.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend"]
