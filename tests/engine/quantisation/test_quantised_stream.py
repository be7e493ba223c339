"""One tensor in another type: in pieces as at once; what is no number or too large is told by its place."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.gguf.writer import StreamedTensor, write_gguf
from engine.quantisation import quantised_stream as module
from engine.quantisation.choosing_types import ChosenType, copied
from engine.quantisation.dequantise import dequantise
from engine.quantisation.quantise import QUANTISERS, make_tensor, quantise
from engine.quantisation.quantised_stream import quantised_stream
from engine.tensor import Tensor

SHAPE = (3, 5, 512)
"""Of experts."""
BLOCK_TYPES = [name for name in QUANTISERS if TENSOR_TYPES[name].block_size > 1]


def written(tensor: Tensor, type_name: str, threads: int = 1) -> bytes:
    choice = ChosenType(tensor, type_name, TENSOR_TYPES[type_name])
    stream = quantised_stream(choice, threads)
    assert (stream.name, stream.shape, stream.type) == (tensor.name, tensor.shape, choice.type)
    data = b"".join(bytes(np.asarray(chunk)) for chunk in stream.chunks())
    assert len(data) == stream.nbytes == choice.nbytes
    return data


def weights() -> np.ndarray:
    return np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)


@pytest.mark.parametrize("type_name", QUANTISERS)
@pytest.mark.parametrize("rows", [1, 2, 15, 100])
def test_pieces_make_the_whole(monkeypatch: pytest.MonkeyPatch, type_name: str, rows: int) -> None:
    monkeypatch.setattr(module, "CHUNK_NUMBERS", rows * 512)
    found = written(make_tensor("w", weights()), type_name, threads=2)
    assert found == quantise(weights(), type_name).tobytes()


@pytest.mark.parametrize("source", ["F16", "BF16", "Q8_0", "Q4_K", "IQ4_XS"])
def test_what_comes_in_is_decoded(source: str) -> None:
    tensor = make_tensor("w", weights(), source)
    assert written(tensor, "Q6_K") == quantise(dequantise(tensor), "Q6_K").tobytes()


@pytest.mark.parametrize("type_name", QUANTISERS)
def test_the_same_type_is_a_copy(type_name: str) -> None:
    tensor = make_tensor("w", weights(), type_name)
    assert written(tensor, type_name) == tensor.data.tobytes()


def test_float64_is_rounded_once() -> None:
    numbers = np.array([[1 / 3, 1e-40, -2.5, 1e300]])
    tensor = Tensor.contiguous("w", TENSOR_TYPES["F64"], (1, 4), numbers.view(np.uint8).reshape(-1))
    with pytest.raises(ModelFileError, match=r"The weight \(0, 3\) of w is inf"):
        written(tensor, "F32")
    assert written(tensor.sliced(1, 0, 3), "F32") == numbers[:, :3].astype(np.float32).tobytes()


@pytest.mark.parametrize("type_name", QUANTISERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("source", ["F32", "F16", "BF16"])
def test_no_numbers_are_told_by_their_place(
    monkeypatch: pytest.MonkeyPatch, type_name: str, bad: float, source: str
) -> None:
    """Case Q-03; the same where nothing is converted."""
    monkeypatch.setattr(module, "CHUNK_NUMBERS", 512)
    values = weights()
    values[2, 1, 77] = bad
    if source == "F32":
        tensor = make_tensor("blk.0.ffn_up_exps.weight", values)
    elif source == "F16":
        data = values.astype("<f2").view(np.uint8).reshape(-1)
        tensor = Tensor.contiguous("blk.0.ffn_up_exps.weight", TENSOR_TYPES["F16"], SHAPE, data)
    else:
        data = np.ascontiguousarray(values.view("<u2")[..., 1::2]).view(np.uint8).reshape(-1)
        tensor = Tensor.contiguous("blk.0.ffn_up_exps.weight", TENSOR_TYPES["BF16"], SHAPE, data)
    place = rf"The weight \(2, 1, 77\) of blk\.0\.ffn_up_exps\.weight is {bad}"
    with pytest.raises(ModelFileError, match=place):
        written(tensor, type_name)


def test_damaged_scales() -> None:
    tensor = make_tensor("w", np.ones((2, 256)), "Q4_0")
    data = tensor.data.copy()
    data[18:20] = 0xFF
    damaged = Tensor.contiguous("w", tensor.type, tensor.shape, data)
    with pytest.raises(ModelFileError, match="The tensor w holds a scale"):
        written(damaged, "Q4_0")
    with pytest.raises(ModelFileError, match=r"The weight \(0, 32\) of w is nan"):
        written(damaged, "F16")


@pytest.mark.parametrize("type_name", [*BLOCK_TYPES, "F16"])
def test_weights_that_are_too_large_are_told_by_their_place(type_name: str) -> None:
    values = weights()
    values[1, 4, 300] = -1e38
    with pytest.raises(ModelFileError, match=r"\(1, 4, 300\) of w is -1e\+38, too large for") as caught:
        written(make_tensor("w", values), type_name)
    assert "BF16" in caught.value.advice


@pytest.mark.parametrize(("weight", "fits"), [(65504, True), (65519, True), (65520, False), (-65520, False)])
def test_the_end_of_half_precision(weight: float, fits: bool) -> None:
    """Case Q-07: what rounds to infinity is told."""
    tensor = make_tensor("w", np.array([[1, weight]]))
    if fits:
        assert written(tensor, "F16") == np.array([1, 65504], "<f2").tobytes()
    else:
        with pytest.raises(ModelFileError, match=r"\(0, 1\) of w is -?65520, too large for F16"):
            written(tensor, "F16")


def test_from_bfloat16_to_half_precision() -> None:
    """Case Q-07: BF16 goes on from 65280 to 65536."""
    assert written(make_tensor("w", [[65280.0, 1]], "BF16"), "F16") == np.array([65280, 1], "<f2").tobytes()
    with pytest.raises(ModelFileError, match=r"\(0, 0\) of w is 65536, too large for F16"):
        written(make_tensor("w", [[65536.0, 1]], "BF16"), "F16")


def test_the_end_of_bfloat16() -> None:
    """Its largest number is 3.3895e38; half a step above, rounding gives infinity."""
    assert written(make_tensor("w", [[3.39e38]]), "BF16") == b"\x7f\x7f"
    with pytest.raises(ModelFileError, match="too large for BF16"):
        written(make_tensor("w", [[3.4e38]]), "BF16")


@pytest.mark.parametrize(
    ("bits", "expected"),
    [(0x3F800000, 0x3F80), (0x3F808000, 0x3F80), (0x3F818000, 0x3F82), (0x80000001, 0x8000)],
)
def test_bfloat16_is_rounded_to_even(bits: int, expected: int) -> None:
    tensor = Tensor.contiguous("w", TENSOR_TYPES["F32"], (1, 1), np.array([bits], "<u4").view(np.uint8))
    assert written(tensor, "BF16") == expected.to_bytes(2, "little")


@pytest.mark.parametrize("type_name", QUANTISERS)
@pytest.mark.parametrize("value", [0.0, 1e-11, -1e-11, 1e-40])
def test_tiny_weights_stay_finite_and_tiny(type_name: str, value: float) -> None:
    """Case Q-03."""
    data = written(make_tensor("w", np.full((2, 256), value)), type_name)
    tensor = Tensor.contiguous("w", TENSOR_TYPES[type_name], (2, 256), np.frombuffer(data, np.uint8))
    assert np.abs(dequantise(tensor)).max() <= 2 * abs(value)


def test_a_large_tensor_is_never_in_memory(tmp_path: Path) -> None:
    """64 MiB of experts, of which one alone has 16 MiB."""
    shape = (4, 2048, 4096)
    zeros = np.zeros(1 << 20, np.uint8)
    source = StreamedTensor("w", TENSOR_TYPES["F16"], shape, lambda: (zeros for _ in range(64)))
    write_gguf(tmp_path / "large.gguf", {}, [source])
    with GGUFFile.open(tmp_path / "large.gguf") as file:
        tensor = file.tensors["w"]
        for choice in (ChosenType(tensor, "Q8_0", TENSOR_TYPES["Q8_0"]), copied(tensor)):
            tracemalloc.start()
            try:
                total = sum(np.asarray(chunk).nbytes for chunk in quantised_stream(choice, 1).chunks())
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert total == choice.nbytes
            assert peak < 32 << 20
