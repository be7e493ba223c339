"""Sound files: what was written comes back, real models open fast, and closing is safe."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf.metadata import ValueType
from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import SUPPORTED_TYPES
from engine.gguf.writer import write_gguf
from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import make_tensor
from tests.helpers.raw_gguf import ARRAY, STRING, array, entry, gguf, string
from tests.helpers.tiny_model import N_TOKENS, write_tiny_model
from tests.helpers.weight_blocks import make_weight

METADATA = {
    "general.architecture": "llama",
    "a.bool": True,
    "an.int": 7,
    "a.negative": -7,
    "a.large": 2**40,
    "a.float": 0.5,
    "some.strings": ["", "zwölf", b"\xff\xfe"],
    "some.ints": [3, -1],
    "some.floats": [0.5, float("inf")],
    "some.bools": [True, False],
    "some.bytes": np.arange(5, dtype=np.uint8),
}


def test_a_file_cut_short_while_open_is_an_error_and_no_death(tmp_path):
    """Touching the map there would end the process; loading reads instead."""
    path = tmp_path / "tiny.gguf"
    write_tiny_model(path)
    with GGUFFile.open(path) as file:
        first, *_, last = file.tensors.values()
        before = bytes(first.data)
        os.truncate(path, path.stat().st_size - last.nbytes)
        assert bytes(first.in_memory().data) == before
        with pytest.raises(ModelFileError, match="shorter"):
            last.in_memory()
        assert first.in_memory().in_memory().source is None


def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "model [1] 100%.gguf"
    weights = np.random.default_rng(0).standard_normal((4, 256)).astype(np.float32)
    tensors = [
        replace(make_weight(name, 4, 256, "random"), name=f"{name}.weight") for name in SUPPORTED_TYPES
    ]
    tensors.append(make_tensor("vector", weights[0, :3]))
    write_gguf(path, METADATA, tensors)
    with GGUFFile.open(path) as file:
        metadata = file.metadata
        assert list(metadata) == list(METADATA)
        assert metadata.values["an.int"].type is ValueType.UINT32
        assert metadata.values["a.negative"].type is ValueType.INT32
        assert [metadata.get_int(key) for key in ("an.int", "a.negative", "a.large")] == [7, -7, 2**40]
        assert metadata.get_bool("a.bool") is True
        assert metadata.get_float("a.float") == 0.5
        assert metadata.get_byte_strings("some.strings") == [b"", "zwölf".encode(), b"\xff\xfe"]
        assert metadata.get_ints("some.ints").tolist() == [3, -1]
        assert metadata.get_floats("some.floats").tolist() == [0.5, float("inf")]
        assert metadata.get_bools("some.bools").tolist() == [True, False]
        assert metadata.get_ints("some.bytes").tolist() == [0, 1, 2, 3, 4]
        assert (file.version, file.alignment, file.size) == (3, 32, path.stat().st_size)
        assert list(file.tensors) == [tensor.name for tensor in tensors]
        for tensor in tensors:
            read = file.tensors[tensor.name]
            assert (read.type, read.shape) == (tensor.type, tensor.shape)
            assert not read.data.flags.writeable
            np.testing.assert_array_equal(read.data, tensor.data)


def test_shapes_are_in_numpy_order(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    write_gguf(path, {}, [make_tensor("cube", cube)])
    with GGUFFile.open(path) as file:
        assert file.tensors["cube"].shape == (2, 3, 4)
        np.testing.assert_array_equal(dequantise(file.tensors["cube"]), cube)


def test_tensors_outlive_the_file(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    file = GGUFFile.open(path)
    tensor = file.tensors["output_norm.weight"]
    before = dequantise(tensor)
    file.close()
    file.close()
    assert file.tensors == {}
    np.testing.assert_array_equal(dequantise(tensor), before)
    assert file.metadata.get_string("general.architecture") == "llama"


def test_closing_frees_the_map(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("this system does not list its maps")
    path = write_tiny_model(tmp_path / "freed.gguf")
    with GGUFFile.open(path):
        assert str(path) in maps.read_text()
    assert str(path) not in maps.read_text()


def test_large_vocabulary_is_read_fast(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.gguf"
    tokens = [f"token {number}" for number in range(262_144)]
    items = b"".join(string(token.encode()) for token in tokens)
    path.write_bytes(gguf([entry(b"tokens", ARRAY, array(STRING, len(tokens), items))]))
    started = time.process_time()
    with GGUFFile.open(path) as file:
        assert time.process_time() - started < 0.5
        assert file.tensors == {}
        assert file.metadata.get_strings("tokens") == tokens


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("quant_type", ["F32", "Q4_1", "Q4_K"])
def test_tiny_models_open(tmp_path: Path, family: str, quant_type: str) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf", family, quant_type=quant_type)
    again = write_tiny_model(tmp_path / "again.gguf", family, quant_type=quant_type)
    assert path.read_bytes() == again.read_bytes()
    with GGUFFile.open(path) as file:
        assert file.tensors["token_embd.weight"].type.name == quant_type
        assert file.tensors["token_embd.weight"].shape[0] == N_TOKENS
        assert len(set(file.metadata.get_strings("tokenizer.ggml.tokens"))) == N_TOKENS


def test_smollm2(smollm2_path: Path) -> None:
    with GGUFFile.open(smollm2_path) as file:
        assert len(file.tensors) == 272
        assert file.metadata.get_int("llama.block_count") == 30
        assert file.tensors["token_embd.weight"].shape == (49152, 576)
        assert {tensor.type.name for tensor in file.tensors.values()} == {"F32", "Q4_1", "Q8_0"}


def test_gemma3(gemma3_path: Path) -> None:
    with GGUFFile.open(gemma3_path) as file:
        assert len(file.tensors) == 236
        assert file.metadata.length("tokenizer.ggml.tokens") == 262_144
        types = {tensor.type.name for tensor in file.tensors.values()}
        assert types == {"F32", "Q4_K", "Q5_0", "Q6_K", "Q8_0"}
