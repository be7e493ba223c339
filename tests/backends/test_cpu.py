"""The cpu backend passes the conformance suite; its numbers are compared with the truth elsewhere."""

import numpy as np

from engine.backends.cpu.backend import CpuBackend
from tests.backends.backend_suite import TEXT, BackendSuite


class TestCpu(BackendSuite):
    def make_backend(self):
        return CpuBackend(threads=2)

    def tolerance(self, quant_type):
        """Sums differ by 1e-7 with the size of a batch; half precision in the KV cache makes 6e-4 of it, and
        the fixed point in which quantised weights are multiplied more."""
        return 2e-3 if quant_type == "F32" else 2e-2


class TestCpuFromTheMap(TestCpu):
    """The weights stay in the file."""

    def make_backend(self):
        return CpuBackend(threads=2, repack=False)

    def test_the_file_may_be_closed_after_loading(self, llama):
        """The map lives on as long as it is needed."""
        wanted = llama.run(llama.context(), TEXT[:5])
        llama.file.close()
        np.testing.assert_array_equal(llama.run(llama.context(), TEXT[:5]), wanted)
