"""What the system must have beside Python: found out without apt, installed by apt as root, else named.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

QT_LIBRARIES = {
    "libglib2.0-0": "libglib-2.0.so.0",
    "libegl1": "libEGL.so.1",
    "libgl1": "libGL.so.1",
    "libx11-6": "libX11.so.6",
    "libdbus-1-3": "libdbus-1.so.3",
    "libfontconfig1": "libfontconfig.so.1",
    "libxkbcommon0": "libxkbcommon.so.0",
    "libxcb-cursor0": "libxcb-cursor.so.0",
    "libxcb-icccm4": "libxcb-icccm.so.4",
    "libxcb-keysyms1": "libxcb-keysyms.so.1",
    "libxcb-image0": "libxcb-image.so.0",
    "libxcb-randr0": "libxcb-randr.so.0",
    "libxcb-render-util0": "libxcb-render-util.so.0",
    "libxcb-shape0": "libxcb-shape.so.0",
    "libxcb-xkb1": "libxcb-xkb.so.1",
    "libxkbcommon-x11-0": "libxkbcommon-x11.so.0",
    "libx11-xcb1": "libX11-xcb.so.1",
}
"""Debian package -> the shared library that Qt loads from it."""

TEST_PROGRAMS = {"xvfb": "Xvfb", "xauth": "xauth", "imagemagick": "import"}
FONTS = {"fonts-dejavu-core": "DejaVuSans.ttf", "fonts-noto-color-emoji": "NotoColorEmoji.ttf"}
FONT_FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), Path.home() / ".local/share/fonts")


def has_compiler() -> bool:
    return bool(os.environ.get("CXX")) or any(map(shutil.which, ("g++", "c++", "clang++")))


def has_headers() -> bool:
    """Whether Python's header files are here, which compiled modules need."""
    return Path(sysconfig.get_path("include"), "Python.h").is_file()


def has_display() -> bool:
    return sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


def missing(for_venv: bool, for_window: bool, for_tests: bool) -> list[str]:
    """Debian packages that are wanting, by Debian 12 names; empty on other systems than Linux."""
    if sys.platform != "linux":
        return []
    wanting = [] if has_compiler() else ["g++"]
    if not has_headers():
        wanting.append("python3-dev")
    if for_venv and importlib.util.find_spec("ensurepip") is None:  # Debian keeps it in a package of its own
        wanting.append("python3-venv")
    if for_window or for_tests:
        known = _shared_libraries()
        wanting += [package for package, library in QT_LIBRARIES.items() if library not in known]
        fonts = _font_files()
        wanting += [package for package, font in FONTS.items() if font not in fonts]
    if for_tests:
        wanting += [package for package, program in TEST_PROGRAMS.items() if not shutil.which(program)]
    return wanting


def _shared_libraries() -> str:
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        return subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def _font_files() -> set[str]:
    return {name for folder in FONT_FOLDERS for _, _, names in os.walk(folder) for name in names}


def install(packages: list[str], run: Callable[[list[str]], bool]) -> str:
    """Installs Debian packages; returns "" or one line that says what a person should do.

    run executes a command and tells whether it went well.
    """
    if not shutil.which("apt-get"):
        return f"Please install what your system calls these Debian packages: {' '.join(packages)}"
    if os.geteuid() != 0:
        return f"Please install system packages: sudo apt-get install {' '.join(map(_apt_name, packages))}"
    if not run(["apt-get", "update", "-q"]):
        return "apt-get update failed; please look at the network and the sources of apt."
    names = [_apt_name(package) for package in packages]
    if not run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *names]):
        return f"apt-get could not install: {' '.join(names)}"
    return ""


def _apt_name(package: str) -> str:
    """The name that apt knows: from Debian 13 on some end in t64."""
    for name in (package, package + "t64"):
        answer = subprocess.run(["apt-cache", "policy", name], capture_output=True, text=True, check=False)
        if "Candidate:" in answer.stdout and "Candidate: (none)" not in answer.stdout:
            return name
    return package
