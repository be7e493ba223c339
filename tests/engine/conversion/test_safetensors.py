"""Reading safetensors: sound files, and every lie that a header can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.conversion.safetensors import SafetensorsFile
from engine.errors import ModelFileError

F32 = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
BF16 = {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]}


def write(path: Path, header: Any, data: bytes = bytes(28)) -> Path:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def test_tensors_and_rows(path: Path) -> None:
    numbers = np.arange(6, dtype="<f4")
    halves = np.array([0x3F80, 0xC000], "<u2")  # 1 and -2
    header = {"__metadata__": {"format": "pt"}, "b": BF16, "a": F32}
    write(path, header, numbers.tobytes() + halves.tobytes())
    file = SafetensorsFile(path)
    assert list(file.tensors) == ["a", "b"]
    np.testing.assert_array_equal(file.tensors["a"].read(), numbers.reshape(2, 3))
    np.testing.assert_array_equal(file.tensors["a"].read(1, 2), [[3, 4, 5]])
    np.testing.assert_array_equal(file.tensors["b"].read(), halves)
    file.close()


def test_a_file_without_tensors(path: Path) -> None:
    SafetensorsFile(write(path, {}, b"")).close()


DAMAGED: dict[str, Any] = {
    "no object": b"[]",
    "no JSON": b"{",
    "space before it": b' {"a": {}}',
    "no UTF-8": b'{"\xff": 1}',
    "a name twice": b'{"a": 1, "a": 2}',
    "nested too deeply": b'{"a":' * 100_000,
    "no description": {"a": [1]},
    "no type": {"a": {"shape": [1], "data_offsets": [0, 28]}},
    "unknown type": {"a": F32 | {"dtype": "F33"}},
    "type of another type": {"a": F32 | {"dtype": ["F32"]}},
    "negative length": {"a": F32 | {"shape": [-2, -3]}},
    "fractional length": {"a": F32 | {"shape": [2.0, 3]}},
    "length that is a truth value": {"a": F32 | {"shape": [True, 6]}},
    "product beyond 64 bits": {"a": F32 | {"shape": [2**32, 2**32, 6]}},
    "many axes": {"a": F32 | {"shape": [1] * 9 + [6]}},
    "no shape": {"a": F32 | {"shape": None}},
    "three offsets": {"a": F32 | {"data_offsets": [0, 24, 24]}},
    "offsets the wrong way": {"a": F32 | {"data_offsets": [24, 0]}},
    "offsets beyond the file": {"a": F32 | {"data_offsets": [8, 32]}},
    "huge offsets": {"a": F32 | {"data_offsets": [2**64, 2**64 + 24]}},
    "fewer bytes than the shape": {"a": F32 | {"data_offsets": [0, 20]}, "b": BF16},
    "a gap": {"a": F32 | {"data_offsets": [2, 26]}},
    "data that nothing names": {"a": F32},
    "overlap": {"a": F32, "b": BF16 | {"data_offsets": [22, 26]}},
    "the same place": {"a": F32, "c": F32, "b": BF16},
}


@pytest.mark.parametrize("header", DAMAGED.values(), ids=DAMAGED)
def test_damaged_headers(path: Path, header: Any) -> None:
    with pytest.raises(ModelFileError) as caught:
        SafetensorsFile(write(path, header))
    assert path.name in caught.value.title and caught.value.advice


@pytest.mark.parametrize("raw", [b"", b"\0" * 7, b"\xff" * 8, (2**40).to_bytes(8, "little") + b"{}"])
def test_files_that_are_too_short(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    with pytest.raises(ModelFileError):
        SafetensorsFile(path)


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.safetensors"):
        with pytest.raises(ModelFileError):
            SafetensorsFile(path)


def test_a_file_that_becomes_shorter(path: Path) -> None:
    file = SafetensorsFile(write(path, {"a": F32, "b": BF16}))
    with path.open("r+b") as other:
        other.truncate(path.stat().st_size - 10)
    with pytest.raises(ModelFileError, match="shorter"):
        file.tensors["b"].read()
    file.close()


def test_numbers_that_cannot_be_read(path: Path) -> None:
    write(path, {"a": {"dtype": "F8_E4M3", "shape": [28], "data_offsets": [0, 28]}})
    file = SafetensorsFile(path)
    with pytest.raises(ModelFileError, match="F8_E4M3"):
        file.tensors["a"].read()
    file.close()


@given(changes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=6))
def test_changed_bytes(tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]) -> None:
    """A file with some bytes changed is refused in words or read; nothing else happens."""
    path = write(tmp_path_factory.mktemp("changed") / "x.safetensors", {"a": F32, "b": BF16})
    raw = bytearray(path.read_bytes())
    for place, byte in changes:
        raw[place % len(raw)] = byte
    path.write_bytes(bytes(raw))
    try:
        file = SafetensorsFile(path)
    except ModelFileError:
        return
    assert (
        sum(tensor.read().nbytes for tensor in file.tensors.values() if tensor.dtype in ("F32", "BF16")) <= 28
    )
    file.close()
