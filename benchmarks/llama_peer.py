"""llama.cpp to compare with: PyPI's llama-cpp-python, compiled here into environments of its own.

`native` is compiled for this machine, the best it can be; `avx2` as for a CPU that stops at AVX2.  An
environment that is there already is used.  Compiling takes about a quarter of an hour of one core.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

WORK = Path(__file__).with_name("work")
PACKAGE = "llama-cpp-python"
VERSION = "0.3.36"
FLAVOURS = {
    "native": "",
    "avx2": "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON -DGGML_AVX512=OFF",
}
"""Name -> options of its build."""

_ASK = "import llama_cpp; print(llama_cpp.llama_print_system_info().decode())"


def peer_python(flavour: str) -> Path:
    """The Python of an environment with that flavour, compiled first where it is missing.

    Raises RuntimeError where it cannot be compiled, or was compiled for other instructions than it should.
    """
    folder = WORK / f"llama-{flavour}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        _install(folder, python, FLAVOURS[flavour])
    check_flavour(flavour, system_info(python))
    return python


def system_info(python: Path) -> str:
    """llama.cpp's own line of the instructions it was compiled for."""
    return _run([str(python), "-c", _ASK]).strip()


def check_flavour(flavour: str, info: str) -> None:
    """Raises RuntimeError where info, llama.cpp's line of its instructions, does not fit the flavour.

    A wheel out of pip's cache, for instance, may have been compiled with other options.
    """
    has = dict(re.findall(r"(\w+) = (\d)", info))
    if flavour == "avx2" and (has.get("AVX512") == "1" or has.get("AVX2") != "1"):
        raise RuntimeError(f"this llama.cpp was not compiled for AVX2 and no more: {info}")
    if flavour == "native" and "avx512f" in _cpu_flags() and has.get("AVX512") != "1":
        raise RuntimeError(f"this CPU has AVX-512, and this llama.cpp does not use it: {info}")


def _cpu_flags() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


def _install(folder: Path, python: Path, build_options: str) -> None:
    print(f"compiling {PACKAGE} {VERSION} into {folder} …", file=sys.stderr)
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    # pip's cache of wheels knows nothing of CMAKE_ARGS: it would give one flavour for the other.
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-binary", PACKAGE]
    _run([*install, f"{PACKAGE}=={VERSION}"], CMAKE_ARGS=build_options)


def _run(command: list[str], **variables: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
