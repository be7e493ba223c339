"""Makes the single file: `python3 dev.py package`, which sets up .venv and then runs this with its Python.

The program is built into a wheel with the kernels that .venv already has, and installed with PyInstaller into
an environment of its own, so that nothing a developer has lying about gets in.  The result is dist/causerie.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "package"
WHEELS = WORK / "wheels"
ENVIRONMENT = WORK / "venv"
BIN = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
STAMP = ENVIRONMENT / "requirements.sha256"
RESULT = ROOT / "dist" / ("causerie.exe" if os.name == "nt" else "causerie")
LARGEST_MEGABYTES = 120


def main() -> int:
    WHEELS.mkdir(parents=True, exist_ok=True)
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    print("- building the wheel", flush=True)
    # in the folder of the editable build, so that kernels compiled there are only linked again
    compiled_in = f"build-dir=build/{sys.implementation.cache_tag}-editable"
    options = ["-q", "--no-build-isolation", "--no-deps", "-C", compiled_in, "-w", str(WHEELS)]
    run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)])
    (wheel,) = WHEELS.glob("causerie-*.whl")

    fingerprint = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    python = BIN / Path(sys.executable).name
    if not STAMP.is_file() or STAMP.read_text() != fingerprint:
        print("- making a clean environment", flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)])
        run([str(python), "-m", "pip", "install", "-q", f"{wheel}[package]"])
        STAMP.write_text(fingerprint)
    else:
        run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel)])

    print("- packing it into one file", flush=True)
    spec = ROOT / "packaging" / "causerie.spec"
    options = [
        "--noconfirm",
        "--log-level",
        "WARN",
        "--distpath",
        str(RESULT.parent),
        "--workpath",
        str(WORK),
    ]
    # from the work folder, so that the checkout's own packages do not shadow the installed ones
    run([str(python), "-m", "PyInstaller", *options, str(spec)], cwd=WORK)

    megabytes = RESULT.stat().st_size / 1e6
    print(f"{RESULT.relative_to(ROOT)}: {megabytes:.0f} MB")
    if megabytes > LARGEST_MEGABYTES:
        print(f"error: that is more than {LARGEST_MEGABYTES} MB", file=sys.stderr)
        return 1
    return 0


def run(command: list[str], cwd: Path = ROOT) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {' '.join(map(str, error.cmd[:4]))} … ended with the status {error.returncode}")
