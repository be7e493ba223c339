"""A model file in another mixture: every byte is accounted for, and was foretold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import UnsupportedModelError
from engine.gguf.file_types import FILE_TYPES
from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import TYPES_BY_NUMBER
from engine.gguf.writer import write_gguf, write_gguf_parts
from engine.quantisation.dequantise import dequantise
from engine.quantisation.mixtures import MIXTURES
from engine.quantisation.quantise import make_tensor, quantise
from engine.quantisation.quantise_file import quantise_file
from tests.helpers.quantised_files import Written, only, values_of
from tests.helpers.tiny_model import write_tiny_model


@pytest.mark.parametrize("mixture", MIXTURES)
def test_every_mixture(source: Path, tmp_path: Path, mixture: str) -> None:
    """Case Q-09."""
    target = tmp_path / "out.gguf"
    told = quantise_file(source, target, mixture, threads=2)
    before, after = Written.read(source), Written.read(target)
    assert after.metadata == before.metadata
    assert FILE_TYPES[after.header.metadata[b"general.file_type"][2]] == mixture
    assert after.header.metadata[b"general.quantization_version"] == (4, None, 2)
    assert list(after.header.tensors) == list(before.header.tensors)
    size = after.data_start
    for name, (lengths, number, offset) in after.header.tensors.items():
        assert lengths == before.header.tensors[name][0]
        assert offset == size - after.data_start and offset % 32 == 0
        type = TYPES_BY_NUMBER[number]
        size += -(-int(np.prod(lengths)) // type.block_size * type.block_bytes // 32) * 32
    assert target.stat().st_size == size == told.file_bytes
    assert {tensor.name: tensor.after for tensor in told.tensors} == after.types
    assert all(type == "F32" for name, type in after.types.items() if "norm" in name)
    assert told.fallbacks == () and sum(told.types.values()) == sum(t.nbytes for t in told.tensors)
    base = MIXTURES[mixture].base
    assert after.types["blk.0.attn_q.weight"] == after.types["token_embd.weight"] == base


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_dry_run_foretells_the_size(source: Path, tmp_path: Path, mixture: str) -> None:
    told = quantise_file(source, tmp_path / "out.gguf", mixture, dry_run=True)
    assert only(tmp_path)
    done = quantise_file(source, tmp_path / "out.gguf", mixture)
    assert told == done and (tmp_path / "out.gguf").stat().st_size == told.file_bytes


@pytest.mark.parametrize("mixture", ["Q8_0", "Q6_K", "Q4_K_M", "Q3_K_M", "IQ4_XS", "BF16"])
def test_weights_are_those_of_the_quantisers(source: Path, tmp_path: Path, mixture: str) -> None:
    quantise_file(source, tmp_path / "out.gguf", mixture)
    weights = values_of(source)
    with GGUFFile.open(tmp_path / "out.gguf") as file:
        for name, tensor in file.tensors.items():
            assert tensor.data.tobytes() == quantise(weights[name], tensor.type.name).tobytes()


def test_threads_change_nothing(source: Path, tmp_path: Path) -> None:
    for threads in (1, 2, 3):
        quantise_file(source, tmp_path / f"{threads}.gguf", "Q4_K_M", threads=threads)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize(
    ("width", "n_heads", "mixture", "types"),
    [
        (288, 4, "Q4_K_M", {"Q5_0", "Q8_0", "F32"}),
        (288, 4, "Q2_K", {"IQ4_NL", "Q8_0", "F32"}),
        (288, 4, "Q5_K_S", {"Q5_1", "Q8_0", "F32"}),
        (60, 2, "Q8_0", {"F16", "F32"}),
    ],
)
def test_rows_that_are_no_whole_blocks(
    tmp_path: Path, width: int, n_heads: int, mixture: str, types: set[str]
) -> None:
    """Case Q-01: told tensor by tensor."""
    source = write_tiny_model(tmp_path / "in.gguf", width=width, n_heads=n_heads)
    told = quantise_file(source, tmp_path / "out.gguf", mixture)
    after = Written.read(tmp_path / "out.gguf").types
    assert set(after.values()) == types
    fallbacks = {tensor.name for tensor in told.fallbacks}
    assert fallbacks == {name for name in after if "norm" not in name}
    assert all(tensor.after == after[tensor.name] != tensor.wanted for tensor in told.fallbacks)
    n_weights = sum(array.size for array in values_of(source).values())
    n_fallback = sum(values_of(source)[name].size for name in fallbacks)
    assert told.n_weights == n_weights and told.fallback_share == n_fallback / n_weights
    data = sum(tensor.nbytes for tensor in told.tensors)
    assert told.bits_per_weight == 8 * data / n_weights


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("mixture", ["Q4_K_M", "Q4_0", "Q8_0", "F16", "BF16", "F32"])
def test_plain_numbers_need_no_switch(tmp_path: Path, kind: str, mixture: str) -> None:
    source = write_tiny_model(tmp_path / "in.gguf", width=256, quant_type=kind)
    quantise_file(source, tmp_path / "out.gguf", mixture)
    assert Written.read(tmp_path / "out.gguf").types["blk.0.attn_q.weight"] == MIXTURES[mixture].base


@pytest.mark.parametrize("mixture", ["F16", "BF16", "Q8_0", "Q4_K_M", "Q2_K", "IQ4_XS"])
def test_the_same_mixture_again_is_a_copy_to_the_byte(source: Path, tmp_path: Path, mixture: str) -> None:
    first = quantise_file(source, tmp_path / "first.gguf", mixture)
    again = quantise_file(tmp_path / "first.gguf", tmp_path / "again.gguf", mixture)
    assert again.already and not first.already
    assert (tmp_path / "again.gguf").read_bytes() == (tmp_path / "first.gguf").read_bytes()


def test_a_file_that_calls_itself_so_is_copied(tmp_path: Path) -> None:
    """Of a program that mixes otherwise: here the output matrix has 4 bits."""
    source = write_tiny_model(
        tmp_path / "in.gguf", width=256, quant_type="Q4_0", metadata={"general.file_type": 2}
    )
    assert quantise_file(source, tmp_path / "out.gguf", "Q4_0").already
    assert (tmp_path / "out.gguf").read_bytes() == source.read_bytes()
    with pytest.raises(UnsupportedModelError, match="quantised already"):
        quantise_file(source, tmp_path / "other.gguf", "Q4_0", output_type="Q6_K")


def test_what_a_file_calls_itself_does_not_keep_numbers_from_being_quantised(tmp_path: Path) -> None:
    source = write_tiny_model(tmp_path / "in.gguf", width=256, metadata={"general.file_type": 7})
    assert not quantise_file(source, tmp_path / "out.gguf", "Q8_0").already
    assert Written.read(tmp_path / "out.gguf").types["output.weight"] == "Q8_0"


def test_a_model_in_parts_becomes_one_file(source: Path, tmp_path: Path) -> None:
    with GGUFFile.open(source) as file:
        parts = write_gguf_parts(tmp_path / "p.gguf", file.metadata, file.tensors.values(), 1 << 20)
    told = quantise_file(parts[2], tmp_path / "out.gguf", "Q5_K_M")
    assert told.source_bytes == sum(path.stat().st_size for path in parts)
    quantise_file(source, tmp_path / "whole.gguf", "Q5_K_M")
    assert (tmp_path / "out.gguf").read_bytes() == (tmp_path / "whole.gguf").read_bytes()


def test_alignment_and_version_are_kept(tmp_path: Path) -> None:
    plain = write_tiny_model(tmp_path / "in.gguf", metadata={"general.alignment": 256})
    with GGUFFile.open(plain) as file:
        write_gguf(tmp_path / "old.gguf", file.metadata, file.tensors.values(), version=2)
    told = quantise_file(tmp_path / "old.gguf", tmp_path / "out.gguf", "Q5_0")
    after = Written.read(tmp_path / "out.gguf")
    assert after.header.version == 2 and all(at % 256 == 0 for _, _, at in after.header.tensors.values())
    assert (tmp_path / "out.gguf").stat().st_size == told.file_bytes


def test_bfloat16_is_read_as_it_is(tmp_path: Path) -> None:
    """Case Q-07: the shape is that of the numbers, not of their bytes."""
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    write_gguf(tmp_path / "x.gguf", {}, [make_tensor("w", values, "BF16")])
    with GGUFFile.open(tmp_path / "x.gguf") as file:
        assert file.tensors["w"].shape == (4, 2)
        np.testing.assert_array_equal(dequantise(file.tensors["w"]), values)


def test_progress_grows_to_the_end(source: Path, tmp_path: Path) -> None:
    shares: list[float] = []
    quantise_file(source, tmp_path / "out.gguf", "Q4_0", on_progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) >= 20
