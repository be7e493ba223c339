#!/usr/bin/env python3
"""For whoever works on Causerie, with nothing but Python and a C++ compiler: `python3 dev.py COMMAND`.

    run [FILE]      set up, get the starter model, open the window (without a display: chat in the terminal)
    test [ARGS]     set up, then ruff, mypy and pytest; --fast leaves out slow tests and real models;
                    other ARGS go to pytest, which then runs alone
    lint            ruff and mypy
    kernels         build the kernels again whose source changed
    package         make the single file (packaging/)

Setting up makes .venv, and does nothing the second time.  Standard library only.
"""

# No newer syntax than Python 3.6 has: an older Python must get as far as the message below.
import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit("Causerie needs Python 3.11, 3.12 or 3.13; this is %d.%d." % sys.version_info[:2])  # noqa: UP031

import contextlib
import hashlib
import os
import re
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools import system_packages

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "causerie-installed.txt"
LOG = ROOT / "build" / "setup.log"

COMPILED = ROOT / "engine" / "kernels" / "compiled"

BUILT_FROM = ("pyproject.toml", "CMakeLists.txt", "engine/kernels/source/*.py")
"""What the installation depends on; everything else is live in an editable installation."""

CHECKED = "checked"
"""Said in the stamp where the kernels that assert every index, which only tests use, were built too."""

FAST = "not slow and not real_model"


def main(arguments: list[str]) -> int:
    commands = {"run": run, "test": test, "lint": lint, "kernels": kernels, "package": package}
    if not arguments or arguments[0] not in commands:
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    os.chdir(ROOT)
    try:
        return commands[arguments[0]](arguments[1:])
    except StepFailed as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


class StepFailed(Exception):
    """A step of the setup failed; the text says which, and what to do."""


# ---- commands


def run(arguments: list[str]) -> int:
    window = system_packages.has_display()
    set_up(for_window=window, for_tests=False)
    model = arguments[0] if arguments else get_starter()
    if window:
        return call([str(PYTHON), "-m", "app", model])
    print("There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set): chatting in the terminal.\n")
    return call([str(PYTHON), "-m", "app", "chat", model])


def test(arguments: list[str]) -> int:
    set_up(for_window=True, for_tests=True)
    fast = "--fast" in arguments
    chosen = [argument for argument in arguments if argument != "--fast"]
    status = 0 if chosen else check_style()
    pytest = [str(PYTHON), "-m", "pytest", *(["-m", FAST] if fast else []), *chosen]
    return call(pytest) or status


def lint(arguments: list[str]) -> int:
    set_up(for_window=False, for_tests=False)
    return check_style()


def kernels(arguments: list[str]) -> int:
    set_up(for_window=False, for_tests=False)
    print("The kernels are up to date.")
    return 0


def package(arguments: list[str]) -> int:
    set_up(for_window=True, for_tests=False)
    return call([str(PYTHON), str(ROOT / "packaging" / "build.py"), *arguments])


# ---- steps


def set_up(for_window: bool, for_tests: bool) -> None:
    """Brings system packages, .venv and the installation up to date."""
    wanting = system_packages.missing(venv_version() == "", for_window, for_tests)
    if wanting:
        with step(f"installing system packages: {' '.join(wanting)}"):
            told = system_packages.install(wanting, logged_quietly)
        if told:
            print(told)
    if not system_packages.has_compiler():
        raise StepFailed("there is no C++ compiler; install g++ or clang, then run this again.")
    if not system_packages.has_headers():
        raise StepFailed("Python's header files are missing; install python3-dev, then run this again.")
    if venv_version() != version_text():
        with step(f"making .venv with Python {version_text()}"):
            logged([sys.executable, "-m", "venv", "--clear", str(VENV)], "the virtual environment")
            logged([str(PYTHON), "-m", "pip", "install", "-q", "--upgrade", "pip"], "upgrading pip")
    stamp = installation_stamp()
    done = read(STAMP).split()
    if done[:1] == [stamp] and any(COMPILED.rglob("*.*")) and (not for_tests or CHECKED in done):
        return
    STAMP.unlink(missing_ok=True)
    pip = [str(PYTHON), "-m", "pip", "install"]
    with step("installing the build tools"):
        logged([*pip, *build_requirements()], "installing the build tools")
    with step("installing Causerie and building its kernels (some minutes the first time)"):
        # without isolation the build tools keep their place, so that only changed kernels are built again
        options = ["-C", f"cmake.define.CAUSERIE_CHECKED={'ON' if for_tests else 'OFF'}"]
        logged([*pip, "-v", "--no-build-isolation", *options, "-e", ".[test]"], "the installation")
    STAMP.write_text(f"{stamp} {CHECKED if for_tests else ''}", encoding="utf-8")


def get_starter() -> str:
    """The path of the starter model, fetched when it is not there."""
    command = [str(PYTHON), "-m", "app", "get", "starter"]
    result = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if result.returncode:
        raise StepFailed("the starter model could not be fetched, as said above; or name a model file.")
    return result.stdout.strip()


def check_style() -> int:
    """Ruff and mypy, both of them whatever the first says."""
    status = 0
    for name, command in {
        "ruff": ["ruff", "check", "."],
        "mypy": ["mypy"],
    }.items():
        started = time.monotonic()
        code = call([str(PYTHON), "-m", *command])
        if code:
            print(f"{name} found something (exit status {code})", flush=True)
            status = 1
        else:
            print(f"{name} is content ({time.monotonic() - started:.1f} s)", flush=True)
    return status


# ---- means


def version_text() -> str:
    return "%d.%d" % sys.version_info[:2]  # noqa: UP031


def venv_version() -> str:
    """Major and minor version of the Python in .venv; "" where there is no working one."""
    try:
        command = [str(PYTHON), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def installation_stamp() -> str:
    """A fingerprint of everything that the installation is built from."""
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for path in sorted({path for pattern in BUILT_FROM for path in ROOT.glob(pattern)}):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build_requirements() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [*settings["build-system"]["requires"], "cmake", "ninja"]


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Says what is being done, and how long it took."""
    print(f"- {title} ...", end="", flush=True)
    started = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - started:.0f} s", flush=True)


def logged_quietly(command: list[str]) -> bool:
    """Runs a command with its output in the log; whether it went well."""
    environment = {"CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1), **os.environ}
    environment["DEBIAN_FRONTEND"] = "noninteractive"
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("ab") as log:
        log.write(f"\n$ {' '.join(command)}\n".encode())
        log.flush()
        start = log.tell()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        shown = ""
        while True:
            try:
                status = process.wait(0.5)
                break
            except subprocess.TimeoutExpired:
                shown = show_progress(shown, build_progress(start))
        show_progress(shown, "")
    return status == 0


def build_progress(start: int) -> str:
    """How far the build is, such as " 59 of 141", by what the log says after byte start; "" before."""
    with LOG.open("rb") as log:
        log.seek(max(start, log.seek(0, os.SEEK_END) - 4096))
        steps = re.findall(rb"\[(\d+)/(\d+)\] ", log.read())
    return " " + b" of ".join(steps[-1]).decode() if steps else ""


def show_progress(shown: str, text: str) -> str:
    """Writes text over what is shown at the end of the line, at a terminal; returns what is shown then."""
    if not sys.stdout.isatty() or text == shown:
        return shown
    back = "\b" * len(shown)
    print(back + " " * len(shown) + back + text, end="", flush=True)
    return text


def logged(command: list[str], what: str) -> None:
    """The same; a failure shows the end of the log."""
    if not logged_quietly(command):
        lines = LOG.read_bytes().decode("utf-8", "replace").splitlines()[-25:]
        raise StepFailed(f"{what} failed. The end of {LOG.relative_to(ROOT)}:\n" + "\n".join(lines))


def call(command: list[str]) -> int:
    """Runs a command in this terminal; its exit status."""
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C is the child's to answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
