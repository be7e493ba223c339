"""Which kernels are chosen, that nothing stands in for missing ones, and what running them leaves alone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import engine.kernels
from engine.errors import KernelsError
from engine.kernels import cpu_level
from engine.kernels.activation import add
from engine.kernels.cpu_level import ENVIRONMENT_VARIABLE, LEVELS, choose_level, supported_levels
from engine.kernels.linear import bind_linear
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.loader import clear_choice, current_level, load_kernel, token_tile
from engine.kernels.packing import pack_weight
from tests.helpers.cpu_levels import NATIVE_LEVELS, at_level
from tests.helpers.weight_blocks import make_weight

FOLDER = Path(engine.kernels.__file__).parent
KERNELS = [
    path.stem
    for path in sorted((FOLDER / "source").glob("*.py"))
    if "# pythran export" in path.read_text(encoding="utf-8")
]

V2 = {"SSE42": True, "POPCNT": True}
V3 = V2 | {"AVX": True, "AVX2": True, "FMA3": True, "F16C": True}
V4 = V3 | dict.fromkeys(("AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL"), True)


@pytest.mark.parametrize(
    ("machine", "features", "levels"),
    [
        ("x86_64", V4, ("x86-64-v4", "x86-64-v3", "x86-64-v2")),
        ("AMD64", V3, ("x86-64-v3", "x86-64-v2")),
        ("x86_64", V2, ("x86-64-v2",)),
        ("x86_64", V4 | {"AVX512VL": False}, ("x86-64-v3", "x86-64-v2")),
        ("x86_64", V3 | {"FMA3": False}, ("x86-64-v2",)),
        ("x86_64", {}, ()),
        ("aarch64", {}, ("arm64",)),
        ("arm64", {}, ("arm64",)),
        ("riscv64", V4, ()),
    ],
)
def test_levels_of_a_feature_table(machine: str, features: dict[str, bool], levels: tuple[str, ...]) -> None:
    assert supported_levels(machine, features) == levels


def test_features_are_those_of_numpy() -> None:
    """A feature that NumPy renamed would silently cost a level."""
    known = cpu_level._cpu_features()
    if cpu_level.platform.machine() in ("x86_64", "AMD64"):
        assert set(V4) <= set(known)


@pytest.fixture
def old_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU of the level x86-64-v3, and nothing asked for."""
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(cpu_level.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(cpu_level, "_cpu_features", lambda: V3)


@pytest.mark.usefixtures("old_cpu")
def test_the_best_level_is_chosen() -> None:
    assert choose_level() == "x86-64-v3"


@pytest.mark.usefixtures("old_cpu")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v2", "checked", "python"])
def test_an_override_is_taken(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_level(level) == level
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, level)
    assert choose_level() == level


@pytest.mark.usefixtures("old_cpu")
@pytest.mark.parametrize(
    ("asked", "title", "advice"),
    [
        ("avx2", "“avx2” is no CPU level", "x86-64-v3"),
        ("X86-64-V3", "“X86-64-V3” is no CPU level", "x86-64-v3"),
        ("../checked", "is no CPU level", "checked"),
        ("x86-64-v4", "cannot run the kernels of level x86-64-v4", "set it to x86-64-v3"),
        ("arm64", "cannot run the kernels of level arm64", "Unset"),
    ],
)
def test_overrides_that_cannot_be(
    asked: str, title: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, asked)
    with pytest.raises(KernelsError) as caught:
        choose_level()
    assert title in caught.value.title
    assert advice in caught.value.advice


def test_a_cpu_without_kernels_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(cpu_level.platform, "machine", lambda: "riscv64")
    with pytest.raises(KernelsError, match="riscv64") as caught:
        choose_level()
    assert "python" in caught.value.advice
    assert choose_level("python") == "python"


def test_the_level_stays_as_first_chosen() -> None:
    level = NATIVE_LEVELS[-1]
    with at_level(level):
        assert current_level() == level
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(ENVIRONMENT_VARIABLE, "python")
            assert current_level() == level
            clear_choice()
            assert current_level() == "python"


def test_tiles_fill_the_registers() -> None:
    """32 vector registers take 14 tokens, 16 take 6; see docs/kernels.md."""
    assert [token_tile(level) for level in LEVELS] == [14, 6, 6, 14, 6, 6]


@pytest.mark.parametrize("level", [*NATIVE_LEVELS, "python"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_there_at_every_level(name: str, level: str) -> None:
    kernel = load_kernel(name, level)
    assert callable(kernel)
    if level != "python":
        module = sys.modules[f"engine.kernels.compiled.{level.replace('-', '_')}.{name}"]
        assert not str(module.__file__).endswith(".py")


def test_lines_for_openmp_are_such() -> None:
    """`ruff format` would put a space behind the #, and the kernel would silently be slow."""
    lines = [
        f"{path.name}: {line.strip()}"
        for path in (FOLDER / "source").glob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "omp" in line.split() and "#" in line
    ]
    assert lines == []


@pytest.mark.parametrize("name", KERNELS)
def test_a_missing_kernel_has_no_stand_in(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    level = NATIVE_LEVELS[0]
    monkeypatch.setitem(sys.modules, f"engine.kernels.compiled.{level.replace('-', '_')}.{name}", None)
    with at_level(level):
        with pytest.raises(KernelsError, match=f"{name} is missing for the CPU level {level}") as caught:
            load_kernel(name)
        assert "dev.py kernels" in caught.value.advice
        if name == "add":
            with pytest.raises(KernelsError):
                add(np.ones(3, np.float32), np.ones(3, np.float32))


def test_a_level_that_was_never_built_is_told() -> None:
    other = "x86-64-v2" if NATIVE_LEVELS == ("arm64",) else "arm64"
    with pytest.raises(KernelsError, match="missing"):
        load_kernel("add", other)


_USES_EVERY_KERNEL = f"""
import numpy as np
from engine.kernels.loader import load_kernel
for level in {NATIVE_LEVELS!r}:
    for name in {KERNELS!r}:
        load_kernel(name, level)
    load_kernel("silu_multiply", level)(*[np.ones(40000, np.float32) for _ in range(3)], 3)
smallest = np.full(1000, 1e-45, np.float32)
print(np.count_nonzero(smallest * np.float32(1)), float(np.float32(1e-40) / np.float32(2)), 5e-324 * 1.0)
"""


def test_denormals_survive_the_kernels() -> None:
    """A library linked with -ffast-math would switch them off for the whole process."""
    run = subprocess.run(
        [sys.executable, "-c", _USES_EVERY_KERNEL],
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER.parents[1],
    )
    assert run.returncode == 0, run.stderr
    count, half, smallest = run.stdout.split()
    assert int(count) == 1000
    assert float(half) == pytest.approx(5e-41, rel=1e-4)
    assert float(smallest) > 0


def counted_during(call: Callable[[], object]) -> int:
    """How often another thread got the interpreter during the call, if nobody is ever asked to let go of it.

    With so long a switch interval a thread runs only when the others wait or let go by themselves.
    """
    count = 0
    begin, end = threading.Event(), threading.Event()

    def run() -> None:
        nonlocal count
        begin.wait()
        while not end.is_set():
            count += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    other = threading.Thread(target=run)
    other.start()
    time.sleep(0.05)
    sys.setswitchinterval(1000.0)
    try:
        begin.set()
        call()
        return count
    finally:
        end.set()
        sys.setswitchinterval(interval)
        other.join()


@pytest.mark.parametrize("level", NATIVE_LEVELS)
@pytest.mark.parametrize("n", [1, 50])
def test_the_interpreter_is_free_while_a_kernel_runs(level: str, n: int) -> None:
    """The window answers while a reply is computed."""
    with at_level(level):
        weight = pack_weight(make_weight("Q8_0", 2048, 4096, "random"))
        x, y = np.ones((n, 4096), np.float32), np.empty((n, 2048), np.float32)
        call = bind_linear(weight, x, y, LinearScratch.allocate(n, 4096, 1), 1)
        assert counted_during(lambda: pow(7, 500_000)) == 0, "this one holds on, as a kernel must not"
        # A busy machine may wake the other thread only after the kernel is done.
        assert any(counted_during(call) for _ in range(50))
