"""The writer: whole or not at all, views written as they look, and copies equal to the byte."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelWriteError
from engine.gguf.reader import GGUFFile
from engine.gguf.writer import write_gguf
from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import make_tensor
from tests.helpers.tiny_model import write_tiny_model


@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_alignment_is_followed(tmp_path: Path, alignment: int) -> None:
    path = tmp_path / "aligned.gguf"
    weights = np.arange(5, dtype=np.float32)
    write_gguf(path, {"general.alignment": alignment}, [make_tensor(name, weights) for name in "abc"])
    with GGUFFile.open(path) as file:
        assert file.alignment == alignment
        for tensor in file.tensors.values():
            np.testing.assert_array_equal(dequantise(tensor), weights)
    assert path.stat().st_size % alignment == 0


def test_copy_of_a_file_is_equal(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", quant_type="Q5_1")
    with GGUFFile.open(path) as file:
        write_gguf(tmp_path / "copy.gguf", file.metadata, file.tensors.values())
    assert (tmp_path / "copy.gguf").read_bytes() == path.read_bytes()


def test_views_are_written_as_they_look(tmp_path: Path) -> None:
    cube = np.arange(2 * 3 * 64, dtype=np.float32).reshape(2, 3, 64)
    tensor = make_tensor("cube", cube).transposed(1, 0, 2).sliced(2, 32, 64)
    write_gguf(tmp_path / "view.gguf", {}, [tensor])
    with GGUFFile.open(tmp_path / "view.gguf") as file:
        np.testing.assert_array_equal(dequantise(file.tensors["cube"]), cube.swapaxes(0, 1)[..., 32:])


def test_slice_that_begins_later(tmp_path: Path) -> None:
    weights = np.arange(64, dtype=np.float32).reshape(4, 16)
    write_gguf(tmp_path / "slice.gguf", {}, [make_tensor("rows", weights).sliced(0, 1, 3)])
    with GGUFFile.open(tmp_path / "slice.gguf") as file:
        np.testing.assert_array_equal(dequantise(file.tensors["rows"]), weights[1:3])


def test_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelWriteError, match="No space left"):
        write_gguf(path, {}, [make_tensor("good", np.ones(4))])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [None, {"a": 1}, 2**64, [2**40], [1, "a"], np.zeros((2, 2)), [[1], [2]]])
def test_values_that_no_file_holds(tmp_path: Path, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_gguf(tmp_path / "model.gguf", {"key": value})
    assert list(tmp_path.iterdir()) == []


def test_names_must_differ(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two tensors of one name"):
        write_gguf(tmp_path / "model.gguf", {}, [make_tensor("a", np.ones(4)), make_tensor("a", np.ones(4))])
