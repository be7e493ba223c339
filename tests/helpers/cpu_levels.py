"""The CPU levels that can run here, and a way to use one of them for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine import kernels
from engine.kernels.cpu_level import ENVIRONMENT_VARIABLE, supported_levels
from engine.kernels.loader import clear_choice

NATIVE_LEVELS = supported_levels()

_CHECKED = Path(kernels.__file__).parent / "compiled" / "checked"

COMPILED_LEVELS = [
    *NATIVE_LEVELS,
    pytest.param(
        "checked",
        marks=pytest.mark.skipif(
            not any(_CHECKED.glob("*.*")),
            reason="the level 'checked' was not built (CMake option CAUSERIE_CHECKED)",
        ),
    ),
]
"""For pytest.mark.parametrize: the compiled levels, and the one that asserts every index.

That one also asserts that signed integers do not overflow, and an exponent made of NaN does: tests that
compute with NaN use NATIVE_LEVELS.
"""


@contextmanager
def at_level(level: str) -> Iterator[None]:
    """Kernels bound inside are those of the level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT_VARIABLE, level)
        clear_choice()
        try:
            yield
        finally:
            clear_choice()
