"""Checkpoints for tests: those of tests/fixtures/families with another configuration or other tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.helpers.family_fixtures import FOLDER

Arrays = dict[str, NDArray[Any]]


def changed_checkpoint(
    name: str,
    folder: Path,
    config: Mapping[str, Any] | None = None,
    tensors: Callable[[Arrays], Arrays] = lambda arrays: arrays,
) -> Path:
    """Writes the fixture to the folder, which is made, and returns it.

    config: values that replace or add keys; None removes one.  tensors: makes others of those there are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = json.loads((FOLDER / name / "config.json").read_text(encoding="utf-8")) | dict(config or {})
    removed = {key for key, value in (config or {}).items() if value is None}
    kept = {key: value for key, value in values.items() if key not in removed}
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", tensors(read_safetensors(FOLDER / name)))
    return folder


def read_safetensors(folder: Path) -> Arrays:
    """The float32 tensors of a fixture, by a reader of its own."""
    data = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data[start:], "<f4", int(np.prod(entry["shape"])), entry["data_offsets"][0]
        ).reshape(entry["shape"])
        for name, entry in header.items()
    }


def write_safetensors(path: Path, arrays: Arrays) -> None:
    """In float32; bytes stay bytes."""
    header, parts, at = {}, [], 0
    for name, array in arrays.items():
        is_bytes = array.dtype == np.uint8
        part = np.ascontiguousarray(array, "u1" if is_bytes else "<f4").tobytes()
        header[name] = {
            "dtype": "U8" if is_bytes else "F32",
            "shape": list(array.shape),
            "data_offsets": [at, at + len(part)],
        }
        parts.append(part)
        at += len(part)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
