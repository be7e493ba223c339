"""Makes the single file: `python3 dev.py package`, which sets up .venv and then runs this with its Python.

    --folder    make the folder form, dist/causerie-folder, whose libraries can be replaced, instead
    --fresh     make everything again, with the newest libraries allowed, even where nothing changed

The program goes into a wheel together with the kernels that .venv has compiled, and is installed with
PyInstaller into an environment of its own, so that nothing a developer has lying about gets in.
docs/decisions/0008-one-file.md says why.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "package"
WHEELS = WORK / "wheels"
LOG = WORK / "build.log"
ENVIRONMENT = WORK / "venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
KERNELS = ROOT / "engine" / "kernels"
INPUTS = ("app", "engine", "packaging", "resources")
INPUT_FILES = ("pyproject.toml", "LICENSE", "THIRD_PARTY_NOTICES.md")
LARGEST_MEGABYTES = 120


class BuildError(Exception):
    """A sentence for the person who builds."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.py package", description="Makes the single file.")
    parser.add_argument("--folder", action="store_true", help="make the folder form instead")
    parser.add_argument("--fresh", action="store_true", help="make everything again")
    options = parser.parse_args(arguments)
    result = result_path(options.folder)
    stamp = WORK / f"{result.name}.sha256"
    started = time.monotonic()
    inputs = fingerprint(input_files())
    if result.exists() and not options.fresh and read(stamp) == inputs:
        print(f"{result.relative_to(ROOT)} is up to date")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    LOG.unlink(missing_ok=True)
    check_kernels()
    install(build_wheel(), options.fresh)
    pack(options.folder)
    print(f"{result.relative_to(ROOT)}: {megabytes(result):.0f} MB, {time.monotonic() - started:.0f} s")
    if not options.folder and megabytes(result) > LARGEST_MEGABYTES:
        raise BuildError(f"that is more than {LARGEST_MEGABYTES} MB")
    stamp.write_text(inputs, encoding="utf-8")
    return 0


def result_path(folder: bool) -> Path:
    if folder:
        return ROOT / "dist" / "causerie-folder"
    return ROOT / "dist" / ("causerie.exe" if os.name == "nt" else "causerie")


def check_kernels() -> None:
    """Raises BuildError where a kernel's source has no compiled file in one of the levels."""
    exporting = [
        path.stem
        for path in sorted((KERNELS / "source").glob("*.py"))
        if "# pythran export" in path.read_text(encoding="utf-8")
    ]
    levels = [path for path in (KERNELS / "compiled").glob("*") if path.is_dir()]
    missing = [
        f"{level.name}/{name}" for level in levels for name in exporting if not [*level.glob(f"{name}.*")]
    ]
    if not levels or missing:
        which = ", ".join(missing[:3]) or "all"
        raise BuildError(f"kernels are not compiled ({which}); run `python3 dev.py kernels` first")


def build_wheel() -> Path:
    """A wheel of the program for this build alone: what .venv has compiled is put in as it is."""
    print("- building the wheel", flush=True)
    WHEELS.mkdir(parents=True, exist_ok=True)
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    # compiled files are ignored by git, and so left out unless they are named
    settings = ["-C", "wheel.cmake=false", "-C", "sdist.include=engine/kernels/compiled"]
    options = ["-q", "--no-build-isolation", "--no-deps", "-w", str(WHEELS)]
    run([sys.executable, "-m", "pip", "wheel", *options, *settings, str(ROOT)])
    (wheel,) = WHEELS.glob("causerie-*.whl")
    return wheel


def install(wheel: Path, fresh: bool) -> None:
    """Installs the wheel, its libraries and PyInstaller into the build's own environment."""
    stamp = ENVIRONMENT / "requirements.sha256"
    requirements = fingerprint([ROOT / "pyproject.toml"])
    pip = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if not fresh and read(stamp) == requirements:
        run([*pip, "--no-deps", "--force-reinstall", str(wheel)])
        return
    print("- making a clean environment", flush=True)
    run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)])
    run([*pip, f"{wheel}[package]"])
    stamp.write_text(requirements, encoding="utf-8")


def pack(folder: bool) -> None:
    print("- packing", flush=True)
    options = ["--noconfirm", "--log-level", "WARN"]
    options += ["--distpath", str(ROOT / "dist"), "--workpath", str(WORK)]
    options += [str(ROOT / "packaging" / "causerie.spec"), *(["--", "--folder"] if folder else [])]
    # from the work folder, so that the checkout's own packages do not shadow the installed ones
    run([str(PYTHON), "-m", "PyInstaller", *options], WORK)


def input_files() -> Iterator[Path]:
    """Everything that the result is made from, except the libraries."""
    for name in INPUTS:
        yield from sorted(
            path for path in (ROOT / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
    yield from (ROOT / name for name in INPUT_FILES)


def fingerprint(files: Iterator[Path] | list[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def megabytes(result: Path) -> float:
    files = [result] if result.is_file() else result.rglob("*")
    return sum(path.lstat().st_size for path in files) / 1e6


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def run(command: list[str], cwd: Path = ROOT) -> None:
    """Runs a command with its output in the log, whose end is shown when it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with LOG.open("ab") as log:
        log.write(f"\n$ {' '.join(command)}\n".encode())
        log.flush()
        done = subprocess.run(command, cwd=cwd, env=environment, stdout=log, stderr=log, check=False)
    if done.returncode:
        lines = LOG.read_bytes().decode("utf-8", "replace").splitlines()[-25:]
        raise BuildError(f"packing failed. The end of {LOG.relative_to(ROOT)}:\n" + "\n".join(lines))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(f"error: {error}")
